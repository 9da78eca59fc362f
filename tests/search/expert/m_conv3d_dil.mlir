// One product for all taps, then each result adds its taps where they belong: a plain product needs
// no indices of taps, and the sums are bound by memory.
func.func @main(%x: tensor<1x64x8x16x16xf32> {isoform.name = "x"}) -> (tensor<1x64x8x16x16xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<64x64x3x3x3xf32>
  %w_taps = graph.transpose %w {perm = [2, 3, 4, 0, 1]} : tensor<3x3x3x64x64xf32>
  %rows = graph.reshape %w_taps {shape = [1728, 64]} : tensor<1728x64xf32>
  %pixels = graph.reshape %x {shape = [64, 2048]} : tensor<64x2048xf32>
  %product = graph.matmul %rows, %pixels : tensor<1728x2048xf32>
  %t = graph.reshape %product {shape = [1728, 8, 16, 16]} : tensor<1728x8x16x16xf32>
  %y = algebra.scope (n: 1, f: 64, d: 8, h: 16, w: 16) sum (q: 3, r: 3, s: 3)
         %t[576 * q + 192 * r + 64 * s + f, d + 2 * q - 2, h + 2 * r - 2, w + 2 * s - 2] : tensor<1x64x8x16x16xf32>
  func.return %y : tensor<1x64x8x16x16xf32>
}
