builtin.module {
  func.func @main(%x: tensor<2x64x28x28xf32> {isoform.name = "x"}) -> (tensor<2x96x14x14xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x64x1x1xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x96x28x28xf32>
    %1 = graph.relu %0 : tensor<2x96x28x28xf32>
    %2 = graph.slice %1 {starts = [0, 0, 0, 0], sizes = [2, 96, 14, 14], steps = [1, 1, 2, 2]} : tensor<2x96x14x14xf32>
    func.return %2 : tensor<2x96x14x14xf32>
  }
}
