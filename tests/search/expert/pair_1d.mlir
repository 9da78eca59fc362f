// The smaller kernel, padded with zeros, has the taps of the larger: one convolution with the
// filters of both.
func.func @main(%x: tensor<1x256x64xf32> {isoform.name = "x"}) -> (tensor<1x256x64xf32> {isoform.name = "a"}, tensor<1x256x64xf32> {isoform.name = "b"}) {
  %wa = graph.weight @wa : tensor<256x256x3xf32>
  %wa.padded = graph.pad %wa {pads = [0, 0, 1, 0, 0, 1]} : tensor<256x256x5xf32>
  %wb = graph.weight @wb : tensor<256x256x5xf32>
  %w = graph.concat %wa.padded, %wb {axis = 0} : tensor<512x256x5xf32>
  %y = graph.conv %x, %w {strides = [1], pads = [2, 2], dilations = [1]} : tensor<1x512x64xf32>
  %a, %b = graph.split %y {axis = 1, sizes = [256, 256]} : tensor<1x256x64xf32>, tensor<1x256x64xf32>
  func.return %a, %b : tensor<1x256x64xf32>, tensor<1x256x64xf32>
}
