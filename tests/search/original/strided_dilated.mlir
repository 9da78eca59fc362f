builtin.module {
  func.func @main(%x: tensor<1x96x26x26xf32> {isoform.name = "x"}) -> (tensor<1x96x13x13xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x96x3x3xf32>
    %0 = graph.conv %x, %w {strides = [2, 2], pads = [2, 2, 2, 2], dilations = [2, 2]} : tensor<1x96x13x13xf32>
    func.return %0 : tensor<1x96x13x13xf32>
  }
}
