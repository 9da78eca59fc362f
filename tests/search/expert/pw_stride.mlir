// Only every second pixel is computed: a convolution of stride 2.
builtin.module {
  func.func @main(%x: tensor<2x64x28x28xf32> {isoform.name = "x"}) -> (tensor<2x96x14x14xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x64x1x1xf32>
    %0 = graph.conv %x, %w {strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x96x14x14xf32>
    %1 = graph.relu %0 : tensor<2x96x14x14xf32>
    func.return %1 : tensor<2x96x14x14xf32>
  }
}
