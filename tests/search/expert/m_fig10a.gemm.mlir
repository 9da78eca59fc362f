// One product for all taps of both kernels, then each result adds its own taps where they belong.
func.func @main(%x: tensor<1x96x17x17xf32> {isoform.name = "x"}) -> (tensor<1x64x17x17xf32> {isoform.name = "p"}, tensor<1x40x17x17xf32> {isoform.name = "q"}) {
  %wa = graph.weight @wa : tensor<64x96x3x3xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 3, 0, 1]} : tensor<3x3x64x96xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [576, 96]} : tensor<576x96xf32>
  %wb = graph.weight @wb : tensor<40x96x3x3xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 3, 0, 1]} : tensor<3x3x40x96xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [360, 96]} : tensor<360x96xf32>
  %rows = graph.concat %wa_rows, %wb_rows {axis = 0} : tensor<936x96xf32>
  %pixels = graph.reshape %x {shape = [96, 289]} : tensor<96x289xf32>
  %product = graph.matmul %rows, %pixels : tensor<936x289xf32>
  %t = graph.reshape %product {shape = [936, 17, 17]} : tensor<936x17x17xf32>
  %p = algebra.scope (n: 1, f: 64, h: 17, w: 17) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f, h + r - 1, w + s - 1] : tensor<1x64x17x17xf32>
  %q = algebra.scope (n: 1, f: 40, h: 17, w: 17) sum (r: 3, s: 3)
         %t[120 * r + 40 * s + f + 576, h + r - 1, w + s - 1] : tensor<1x40x17x17xf32>
  func.return %p, %q : tensor<1x64x17x17xf32>, tensor<1x40x17x17xf32>
}
