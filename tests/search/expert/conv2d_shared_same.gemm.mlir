// One product for all taps of both kernels, then each result adds its own taps where they belong.
func.func @main(%x: tensor<1x64x14x14xf32> {isoform.name = "x"}) -> (tensor<1x64x14x14xf32> {isoform.name = "a"}, tensor<1x64x14x14xf32> {isoform.name = "b"}) {
  %wa = graph.weight @wa : tensor<64x64x3x3xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 3, 0, 1]} : tensor<3x3x64x64xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [576, 64]} : tensor<576x64xf32>
  %wb = graph.weight @wb : tensor<64x64x3x3xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 3, 0, 1]} : tensor<3x3x64x64xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [576, 64]} : tensor<576x64xf32>
  %rows = graph.concat %wa_rows, %wb_rows {axis = 0} : tensor<1152x64xf32>
  %pixels = graph.reshape %x {shape = [64, 196]} : tensor<64x196xf32>
  %product = graph.matmul %rows, %pixels : tensor<1152x196xf32>
  %t = graph.reshape %product {shape = [1152, 14, 14]} : tensor<1152x14x14xf32>
  %a = algebra.scope (n: 1, f: 64, h: 14, w: 14) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f, h + r - 1, w + s - 1] : tensor<1x64x14x14xf32>
  %b = algebra.scope (n: 1, f: 64, h: 14, w: 14) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f + 576, h + r - 1, w + s - 1] : tensor<1x64x14x14xf32>
  func.return %a, %b : tensor<1x64x14x14xf32>, tensor<1x64x14x14xf32>
}
