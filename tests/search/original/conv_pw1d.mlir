builtin.module {
  func.func @main(%x: tensor<2x32x80xf32> {isoform.name = "x"}) -> (tensor<2x32x78xf32> {isoform.name = "y"}) {
    %w1 = graph.weight @w1 : tensor<128x32x1xf32>
    %b1 = graph.weight @b1 : tensor<128xf32>
    %0 = graph.conv %x, %w1, %b1 {strides = [1], pads = [0, 0], dilations = [1]} : tensor<2x128x80xf32>
    %w2 = graph.weight @w2 : tensor<32x128x3xf32>
    %b2 = graph.weight @b2 : tensor<32xf32>
    %1 = graph.conv %0, %w2, %b2 {strides = [1], pads = [0, 0], dilations = [1]} : tensor<2x32x78xf32>
    func.return %1 : tensor<2x32x78xf32>
  }
}
