// RepVGG's reparameterisation: the 1x1 kernel is the middle of a 3x3 kernel, the identity is a 1x1
// convolution with the unit matrix (64 rows of a vector of period 65), and the biases add up.
func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x64x28x28xf32> {isoform.name = "y"}) {
  %0 = graph.constant dense<1.000000e+00> : tensor<1xf32>
  %unit_row = graph.pad %0 {pads = [0, 64]} : tensor<65xf32>
  %1 = graph.broadcast %unit_row {shape = [64, 65], dims = [1]} : tensor<64x65xf32>
  %2 = graph.reshape %1 {shape = [4160]} : tensor<4160xf32>
  %3 = graph.slice %2 {starts = [0], sizes = [4096], steps = [1]} : tensor<4096xf32>
  %identity = graph.reshape %3 {shape = [64, 64, 1, 1]} : tensor<64x64x1x1xf32>
  %w1 = graph.weight @w1 : tensor<64x64x1x1xf32>
  %4 = graph.add %w1, %identity : tensor<64x64x1x1xf32>
  %middle = graph.pad %4 {pads = [0, 0, 1, 1, 0, 0, 1, 1]} : tensor<64x64x3x3xf32>
  %w3 = graph.weight @w3 : tensor<64x64x3x3xf32>
  %w = graph.add %w3, %middle : tensor<64x64x3x3xf32>
  %b3 = graph.weight @b3 : tensor<64xf32>
  %b1 = graph.weight @b1 : tensor<64xf32>
  %bias = graph.add %b3, %b1 : tensor<64xf32>
  %c = graph.conv %x, %w, %bias {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x28x28xf32>
  %y = graph.relu %c : tensor<1x64x28x28xf32>
  func.return %y : tensor<1x64x28x28xf32>
}
