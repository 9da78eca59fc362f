// One product for all taps of both kernels, then each result adds its own taps where they belong.
func.func @main(%x: tensor<1x64x100xf32> {isoform.name = "x"}) -> (tensor<1x64x100xf32> {isoform.name = "a"}, tensor<1x64x100xf32> {isoform.name = "b"}) {
  %wa = graph.weight @wa : tensor<64x64x3xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 0, 1]} : tensor<3x64x64xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [192, 64]} : tensor<192x64xf32>
  %wb = graph.weight @wb : tensor<64x64x3xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 0, 1]} : tensor<3x64x64xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [192, 64]} : tensor<192x64xf32>
  %rows = graph.concat %wa_rows, %wb_rows {axis = 0} : tensor<384x64xf32>
  %pixels = graph.reshape %x {shape = [64, 100]} : tensor<64x100xf32>
  %product = graph.matmul %rows, %pixels : tensor<384x100xf32>
  %t = graph.reshape %product {shape = [384, 100]} : tensor<384x100xf32>
  %a = algebra.scope (n: 1, f: 64, l: 100) sum (r: 3)
         %t[64 * r + f, l + r - 1] : tensor<1x64x100xf32>
  %b = algebra.scope (n: 1, f: 64, l: 100) sum (r: 3)
         %t[64 * r + f + 192, l + r - 1] : tensor<1x64x100xf32>
  func.return %a, %b : tensor<1x64x100xf32>, tensor<1x64x100xf32>
}
