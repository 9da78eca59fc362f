builtin.module {
  func.func @main(%x: tensor<1x64x20x20xf32> {isoform.name = "x"}) -> (tensor<1x1x20x20xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<128x64x3x3xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x128x20x20xf32>
    %1 = graph.reduce_mean %0 {axes = [1]} : tensor<1x1x20x20xf32>
    func.return %1 : tensor<1x1x20x20xf32>
  }
}
