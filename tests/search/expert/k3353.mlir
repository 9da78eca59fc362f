// The smaller kernel, padded with zeros, has the taps of the larger: one convolution with the
// filters of both.
func.func @main(%x: tensor<1x128x8x8xf32> {isoform.name = "x"}) -> (tensor<1x64x8x8xf32> {isoform.name = "p"}, tensor<1x64x8x8xf32> {isoform.name = "q"}) {
  %wa = graph.weight @wa : tensor<64x128x3x3xf32>
  %wa.padded = graph.pad %wa {pads = [0, 0, 1, 1, 0, 0, 1, 1]} : tensor<64x128x5x5xf32>
  %wb = graph.weight @wb : tensor<64x128x5x5xf32>
  %w = graph.concat %wa.padded, %wb {axis = 0} : tensor<128x128x5x5xf32>
  %y = graph.conv %x, %w {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [1, 1]} : tensor<1x128x8x8xf32>
  %p, %q = graph.split %y {axis = 1, sizes = [64, 64]} : tensor<1x64x8x8xf32>, tensor<1x64x8x8xf32>
  func.return %p, %q : tensor<1x64x8x8xf32>, tensor<1x64x8x8xf32>
}
