// A convolution of which every second row and column is kept is one of stride 2.
func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x64x14x14xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<64x64x3x3xf32>
  %y = graph.conv %x, %w {strides = [2, 2], pads = [1, 1, 0, 0], dilations = [1, 1]} : tensor<1x64x14x14xf32>
  func.return %y : tensor<1x64x14x14xf32>
}
