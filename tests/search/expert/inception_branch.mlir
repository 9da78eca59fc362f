// One product for all taps of the three kernels, then each part adds its own taps where they belong.
func.func @main(%x: tensor<1x64x17x17xf32> {isoform.name = "x"}) -> (tensor<1x96x17x17xf32> {isoform.name = "y"}) {
  %wa = graph.weight @wa : tensor<32x64x1x1xf32>
  %wa_rows = graph.reshape %wa {shape = [32, 64]} : tensor<32x64xf32>
  %wb = graph.weight @wb : tensor<48x64x3x3xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 3, 0, 1]} : tensor<3x3x48x64xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [432, 64]} : tensor<432x64xf32>
  %wc = graph.weight @wc : tensor<16x64x5x5xf32>
  %wc_taps = graph.transpose %wc {perm = [2, 3, 0, 1]} : tensor<5x5x16x64xf32>
  %wc_rows = graph.reshape %wc_taps {shape = [400, 64]} : tensor<400x64xf32>
  %rows = graph.concat %wa_rows, %wb_rows, %wc_rows {axis = 0} : tensor<864x64xf32>
  %pixels = graph.reshape %x {shape = [64, 289]} : tensor<64x289xf32>
  %product = graph.matmul %rows, %pixels : tensor<864x289xf32>
  %t = graph.reshape %product {shape = [864, 17, 17]} : tensor<864x17x17xf32>
  %a_sum = algebra.scope (n: 1, f: 32, h: 17, w: 17)
         %t[f, h, w] : tensor<1x32x17x17xf32>
  %a = graph.relu %a_sum : tensor<1x32x17x17xf32>
  %b_sum = algebra.scope (n: 1, f: 48, h: 17, w: 17) sum (r: 3, s: 3)
         %t[144 * r + 48 * s + f + 32, h + r - 1, w + s - 1] : tensor<1x48x17x17xf32>
  %b = graph.relu %b_sum : tensor<1x48x17x17xf32>
  %c_sum = algebra.scope (n: 1, f: 16, h: 17, w: 17) sum (r: 5, s: 5)
         %t[80 * r + 16 * s + f + 464, h + r - 2, w + s - 2] : tensor<1x16x17x17xf32>
  %c = graph.relu %c_sum : tensor<1x16x17x17xf32>
  %y = graph.concat %a, %b, %c {axis = 1} : tensor<1x96x17x17xf32>
  func.return %y : tensor<1x96x17x17xf32>
}
