builtin.module {
  func.func @main(%x: tensor<1x256x101xf32> {isoform.name = "x"}) -> (tensor<1x256x101xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<256x256x3xf32>
    %0 = graph.conv %x, %w {strides = [1], pads = [4, 4], dilations = [4]} : tensor<1x256x101xf32>
    func.return %0 : tensor<1x256x101xf32>
  }
}
