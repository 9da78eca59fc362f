// One product for all 27 taps, then each part adds its nine where its dilation puts them.
func.func @main(%x: tensor<1x256x33x33xf32> {isoform.name = "x"}) -> (tensor<1x192x33x33xf32> {isoform.name = "y"}) {
  %wa = graph.weight @wa : tensor<64x256x3x3xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 3, 0, 1]} : tensor<3x3x64x256xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [576, 256]} : tensor<576x256xf32>
  %wb = graph.weight @wb : tensor<64x256x3x3xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 3, 0, 1]} : tensor<3x3x64x256xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [576, 256]} : tensor<576x256xf32>
  %wc = graph.weight @wc : tensor<64x256x3x3xf32>
  %wc_taps = graph.transpose %wc {perm = [2, 3, 0, 1]} : tensor<3x3x64x256xf32>
  %wc_rows = graph.reshape %wc_taps {shape = [576, 256]} : tensor<576x256xf32>
  %rows = graph.concat %wa_rows, %wb_rows, %wc_rows {axis = 0} : tensor<1728x256xf32>
  %pixels = graph.reshape %x {shape = [256, 1089]} : tensor<256x1089xf32>
  %product = graph.matmul %rows, %pixels : tensor<1728x1089xf32>
  %t = graph.reshape %product {shape = [1728, 33, 33]} : tensor<1728x33x33xf32>
  %a_sum = algebra.scope (n: 1, f: 64, h: 33, w: 33) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f, h + 6 * r - 6, w + 6 * s - 6] : tensor<1x64x33x33xf32>
  %a = graph.relu %a_sum : tensor<1x64x33x33xf32>
  %b_sum = algebra.scope (n: 1, f: 64, h: 33, w: 33) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f + 576, h + 12 * r - 12, w + 12 * s - 12] : tensor<1x64x33x33xf32>
  %b = graph.relu %b_sum : tensor<1x64x33x33xf32>
  %c_sum = algebra.scope (n: 1, f: 64, h: 33, w: 33) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f + 1152, h + 18 * r - 18, w + 18 * s - 18] : tensor<1x64x33x33xf32>
  %c = graph.relu %c_sum : tensor<1x64x33x33xf32>
  %y = graph.concat %a, %b, %c {axis = 1} : tensor<1x192x33x33xf32>
  func.return %y : tensor<1x192x33x33xf32>
}
