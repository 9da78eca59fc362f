// One product for all taps of both kernels, then each result adds its own taps where they belong.
func.func @main(%x: tensor<1x128x8x8xf32> {isoform.name = "x"}) -> (tensor<1x64x8x8xf32> {isoform.name = "p"}, tensor<1x64x8x8xf32> {isoform.name = "q"}) {
  %wa = graph.weight @wa : tensor<64x128x3x3xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 3, 0, 1]} : tensor<3x3x64x128xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [576, 128]} : tensor<576x128xf32>
  %wb = graph.weight @wb : tensor<64x128x5x5xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 3, 0, 1]} : tensor<5x5x64x128xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [1600, 128]} : tensor<1600x128xf32>
  %rows = graph.concat %wa_rows, %wb_rows {axis = 0} : tensor<2176x128xf32>
  %pixels = graph.reshape %x {shape = [128, 64]} : tensor<128x64xf32>
  %product = graph.matmul %rows, %pixels : tensor<2176x64xf32>
  %t = graph.reshape %product {shape = [2176, 8, 8]} : tensor<2176x8x8xf32>
  %p = algebra.scope (n: 1, f: 64, h: 8, w: 8) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f, h + r - 1, w + s - 1] : tensor<1x64x8x8xf32>
  %q = algebra.scope (n: 1, f: 64, h: 8, w: 8) sum (r: 5, s: 5)
         %t[320 * r + 64 * s + f + 576, h + r - 2, w + s - 2] : tensor<1x64x8x8xf32>
  func.return %p, %q : tensor<1x64x8x8xf32>, tensor<1x64x8x8xf32>
}
