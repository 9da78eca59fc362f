builtin.module {
  func.func @main(%x: tensor<1x256x16x16xf32> {isoform.name = "x"}) -> (tensor<1x256x16x16xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<256x64x3x3xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [2, 2], groups = 4} : tensor<1x256x16x16xf32>
    func.return %0 : tensor<1x256x16x16xf32>
  }
}
