// One product for all taps of both kernels, then each result adds its own taps where they belong.
func.func @main(%x: tensor<1x32x8x14x14xf32> {isoform.name = "x"}) -> (tensor<1x32x8x14x14xf32> {isoform.name = "a"}, tensor<1x32x8x14x14xf32> {isoform.name = "b"}) {
  %wa = graph.weight @wa : tensor<32x32x3x3x3xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 3, 4, 0, 1]} : tensor<3x3x3x32x32xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [864, 32]} : tensor<864x32xf32>
  %wb = graph.weight @wb : tensor<32x32x3x3x3xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 3, 4, 0, 1]} : tensor<3x3x3x32x32xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [864, 32]} : tensor<864x32xf32>
  %rows = graph.concat %wa_rows, %wb_rows {axis = 0} : tensor<1728x32xf32>
  %pixels = graph.reshape %x {shape = [32, 1568]} : tensor<32x1568xf32>
  %product = graph.matmul %rows, %pixels : tensor<1728x1568xf32>
  %t = graph.reshape %product {shape = [1728, 8, 14, 14]} : tensor<1728x8x14x14xf32>
  %a = algebra.scope (n: 1, f: 32, d: 8, h: 14, w: 14) sum (q: 3, r: 3, s: 3)
         %t[288 * q + 96 * r + 32 * s + f, d + q - 1, h + r - 1, w + s - 1] : tensor<1x32x8x14x14xf32>
  %b = algebra.scope (n: 1, f: 32, d: 8, h: 14, w: 14) sum (q: 3, r: 3, s: 3)
         %t[288 * q + 96 * r + 32 * s + f + 864, d + q - 1, h + r - 1, w + s - 1] : tensor<1x32x8x14x14xf32>
  func.return %a, %b : tensor<1x32x8x14x14xf32>, tensor<1x32x8x14x14xf32>
}
