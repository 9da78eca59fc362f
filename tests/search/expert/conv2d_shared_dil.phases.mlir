// The four phases of the input are four plain images of one batch, which Winograd's algorithm takes;
// and one convolution has the filters of both.
func.func @main(%x: tensor<1x64x14x14xf32> {isoform.name = "x"}) -> (tensor<1x64x14x14xf32> {isoform.name = "a"}, tensor<1x64x14x14xf32> {isoform.name = "b"}) {
  %wa = graph.weight @wa : tensor<64x64x3x3xf32>
  %wb = graph.weight @wb : tensor<64x64x3x3xf32>
  %w = graph.concat %wa, %wb {axis = 0} : tensor<128x64x3x3xf32>
  %phases = algebra.scope (n: 4, c: 64, h: 9, w: 9)
         %x[0, c, 2 * h + n floordiv 2 - 2, 2 * w + n mod 2 - 2] : tensor<4x64x9x9xf32>
  %plain = graph.conv %phases, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<4x128x7x7xf32>
  %a = algebra.scope (n: 1, f: 64, h: 14, w: 14)
         %plain[2 * (h mod 2) + w mod 2, f, h floordiv 2, w floordiv 2] : tensor<1x64x14x14xf32>
  %b = algebra.scope (n: 1, f: 64, h: 14, w: 14)
         %plain[2 * (h mod 2) + w mod 2, f + 64, h floordiv 2, w floordiv 2] : tensor<1x64x14x14xf32>
  func.return %a, %b : tensor<1x64x14x14xf32>, tensor<1x64x14x14xf32>
}
