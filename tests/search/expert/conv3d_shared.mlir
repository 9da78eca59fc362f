// One convolution with the filters of both; its channels are the two results.
func.func @main(%x: tensor<1x32x8x14x14xf32> {isoform.name = "x"}) -> (tensor<1x32x8x14x14xf32> {isoform.name = "a"}, tensor<1x32x8x14x14xf32> {isoform.name = "b"}) {
  %wa = graph.weight @wa : tensor<32x32x3x3x3xf32>
  %wb = graph.weight @wb : tensor<32x32x3x3x3xf32>
  %w = graph.concat %wa, %wb {axis = 0} : tensor<64x32x3x3x3xf32>
  %y = graph.conv %x, %w {strides = [1, 1, 1], pads = [1, 1, 1, 1, 1, 1], dilations = [1, 1, 1]} : tensor<1x64x8x14x14xf32>
  %a, %b = graph.split %y {axis = 1, sizes = [32, 32]} : tensor<1x32x8x14x14xf32>, tensor<1x32x8x14x14xf32>
  func.return %a, %b : tensor<1x32x8x14x14xf32>, tensor<1x32x8x14x14xf32>
}
