// The smaller kernel, padded with zeros, has the taps of the larger: one convolution with the
// filters of both.
func.func @main(%x: tensor<1x256x64xf32> {isoform.name = "x"}) -> (tensor<1x256x64xf32> {isoform.name = "p"}, tensor<1x256x64xf32> {isoform.name = "q"}) {
  %wa = graph.weight @wa : tensor<256x256x3xf32>
  %wb = graph.weight @wb : tensor<256x256x1xf32>
  %wb.padded = graph.pad %wb {pads = [0, 0, 1, 0, 0, 1]} : tensor<256x256x3xf32>
  %w = graph.concat %wa, %wb.padded {axis = 0} : tensor<512x256x3xf32>
  %y = graph.conv %x, %w {strides = [1], pads = [1, 1], dilations = [1]} : tensor<1x512x64xf32>
  %p, %q = graph.split %y {axis = 1, sizes = [256, 256]} : tensor<1x256x64xf32>, tensor<1x256x64xf32>
  func.return %p, %q : tensor<1x256x64xf32>, tensor<1x256x64xf32>
}
