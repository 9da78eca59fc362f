// The smaller kernel, padded with zeros, has the taps of the larger: one convolution with the
// filters of both.
func.func @main(%x: tensor<1x512x7x7xf32> {isoform.name = "x"}) -> (tensor<1x512x7x7xf32> {isoform.name = "p"}, tensor<1x512x7x7xf32> {isoform.name = "q"}) {
  %w3 = graph.weight @w3 : tensor<512x512x3x3xf32>
  %w1 = graph.weight @w1 : tensor<512x512x1x1xf32>
  %w1.padded = graph.pad %w1 {pads = [0, 0, 1, 1, 0, 0, 1, 1]} : tensor<512x512x3x3xf32>
  %w = graph.concat %w3, %w1.padded {axis = 0} : tensor<1024x512x3x3xf32>
  %0 = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x1024x7x7xf32>
  %y = graph.relu %0 : tensor<1x1024x7x7xf32>
  %p, %q = graph.split %y {axis = 1, sizes = [512, 512]} : tensor<1x512x7x7xf32>, tensor<1x512x7x7xf32>
  func.return %p, %q : tensor<1x512x7x7xf32>, tensor<1x512x7x7xf32>
}
