// One product for all taps, then each result adds its taps where they belong: a plain product needs
// no indices of taps, and the sums are bound by memory.
func.func @main(%x: tensor<6x32x7x9xf32> {isoform.name = "x"}) -> (tensor<6x48x7x9xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<48x32x3x3xf32>
  %w_taps = graph.transpose %w {perm = [2, 3, 0, 1]} : tensor<3x3x48x32xf32>
  %rows = graph.reshape %w_taps {shape = [432, 32]} : tensor<432x32xf32>
  %t = algebra.scope (n: 6, r: 432, h: 7, w: 9) sum (c: 32)
         %rows[r, c] * %x[n, c, h, w] : tensor<6x432x7x9xf32>
  %y = algebra.scope (n: 6, f: 48, h: 7, w: 9) sum (r: 3, s: 3)
         %t[n, 144 * r + 48 * s + f, h + r - 1, w + s - 1] : tensor<6x48x7x9xf32>
  func.return %y : tensor<6x48x7x9xf32>
}
