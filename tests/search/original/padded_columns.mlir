builtin.module {
  func.func @main(%x: tensor<64x200xf32> {isoform.name = "x"}) -> (tensor<64x128xf32> {isoform.name = "y"}) {
    %0 = graph.pad %x {pads = [0, 0, 0, 56]} : tensor<64x256xf32>
    %w = graph.weight @w : tensor<256x128xf32>
    %1 = graph.matmul %0, %w : tensor<64x128xf32>
    func.return %1 : tensor<64x128xf32>
  }
}
