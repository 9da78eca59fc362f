// The halves of the weight are added.
builtin.module {
  func.func @main(%x: tensor<64x128xf32> {isoform.name = "x"}) -> (tensor<64x256xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<256x256xf32>
    %0, %1 = graph.split %w {axis = 0, sizes = [128, 128]} : tensor<128x256xf32>, tensor<128x256xf32>
    %2 = graph.add %0, %1 : tensor<128x256xf32>
    %3 = graph.matmul %x, %2 : tensor<64x256xf32>
    func.return %3 : tensor<64x256xf32>
  }
}
