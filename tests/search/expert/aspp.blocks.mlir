// At dilation 18 most taps of a 33 x 33 image meet the padding. Each output depends on the 2 x 2
// inputs that stand 18 apart: one product of 2 x 2 outputs with 2 x 2 inputs, four taps an output
// instead of nine.
func.func @main(%x: tensor<1x256x33x33xf32> {isoform.name = "x"}) -> (tensor<1x192x33x33xf32> {isoform.name = "y"}) {
  %wa = graph.weight @wa : tensor<64x256x3x3xf32>
  %a_conv = graph.conv %x, %wa {strides = [1, 1], pads = [6, 6, 6, 6], dilations = [6, 6]} : tensor<1x64x33x33xf32>
  %a = graph.relu %a_conv : tensor<1x64x33x33xf32>
  %wb = graph.weight @wb : tensor<64x256x3x3xf32>
  %b_conv = graph.conv %x, %wb {strides = [1, 1], pads = [12, 12, 12, 12], dilations = [12, 12]} : tensor<1x64x33x33xf32>
  %b = graph.relu %b_conv : tensor<1x64x33x33xf32>
  %wc = graph.weight @wc : tensor<64x256x3x3xf32>
  %places = algebra.scope (i: 2, j: 2, f: 64, a: 2, b: 2, c: 256)
         %wc[f, c, a - i + 1, b - j + 1] : tensor<2x2x64x2x2x256xf32>
  %rows = graph.reshape %places {shape = [256, 1024]} : tensor<256x1024xf32>
  %blocks = algebra.scope (a: 2, b: 2, c: 256, h: 18, w: 18)
         %x[0, c, h + 18 * a, w + 18 * b] : tensor<2x2x256x18x18xf32>
  %columns = graph.reshape %blocks {shape = [1024, 324]} : tensor<1024x324xf32>
  %product = graph.matmul %rows, %columns : tensor<256x324xf32>
  %t = graph.reshape %product {shape = [2, 2, 64, 18, 18]} : tensor<2x2x64x18x18xf32>
  %c_sum = algebra.scope (n: 1, f: 64, h: 33, w: 33)
         %t[h floordiv 18, w floordiv 18, f, h mod 18, w mod 18] : tensor<1x64x33x33xf32>
  %c = graph.relu %c_sum : tensor<1x64x33x33xf32>
  %y = graph.concat %a, %b, %c {axis = 1} : tensor<1x192x33x33xf32>
  func.return %y : tensor<1x192x33x33xf32>
}
