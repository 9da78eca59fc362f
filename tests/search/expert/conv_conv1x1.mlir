// Without a function between them the two weights are one: W2 W1, of 64 x 64.
func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x64x28x28xf32> {isoform.name = "y"}) {
  %w1 = graph.weight @w1 : tensor<256x64x1x1xf32>
  %first = graph.reshape %w1 {shape = [256, 64]} : tensor<256x64xf32>
  %w2 = graph.weight @w2 : tensor<64x256x1x1xf32>
  %second = graph.reshape %w2 {shape = [64, 256]} : tensor<64x256xf32>
  %product = graph.matmul %second, %first : tensor<64x64xf32>
  %w = graph.reshape %product {shape = [64, 64, 1, 1]} : tensor<64x64x1x1xf32>
  %y = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x28x28xf32>
  func.return %y : tensor<1x64x28x28xf32>
}
