builtin.module {
  func.func @main(%x: tensor<64x128xf32> {isoform.name = "x"}) -> (tensor<64x256xf32> {isoform.name = "y"}) {
    %0 = graph.concat %x, %x {axis = 1} : tensor<64x256xf32>
    %w = graph.weight @w : tensor<256x256xf32>
    %1 = graph.matmul %0, %w : tensor<64x256xf32>
    func.return %1 : tensor<64x256xf32>
  }
}
