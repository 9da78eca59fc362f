builtin.module {
  func.func @main(%x: tensor<2x64x24x24xf32> {isoform.name = "x"}) -> (tensor<2x96x24x1xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x64x1x1xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x96x24x24xf32>
    %1 = graph.reduce_mean %0 {axes = [3]} : tensor<2x96x24x1xf32>
    func.return %1 : tensor<2x96x24x1xf32>
  }
}
