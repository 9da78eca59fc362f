// A batch of four products, one of each group, for all taps; then each result adds its taps where
// they belong.
func.func @main(%x: tensor<1x256x16x16xf32> {isoform.name = "x"}) -> (tensor<1x256x16x16xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<256x64x3x3xf32>
  %w_groups = graph.reshape %w {shape = [4, 64, 64, 3, 3]} : tensor<4x64x64x3x3xf32>
  %w_taps = graph.transpose %w_groups {perm = [0, 3, 4, 1, 2]} : tensor<4x3x3x64x64xf32>
  %rows = graph.reshape %w_taps {shape = [4, 576, 64]} : tensor<4x576x64xf32>
  %pixels = graph.reshape %x {shape = [4, 64, 256]} : tensor<4x64x256xf32>
  %product = graph.matmul %rows, %pixels : tensor<4x576x256xf32>
  %t = graph.reshape %product {shape = [4, 3, 3, 64, 16, 16]} : tensor<4x3x3x64x16x16xf32>
  %y = algebra.scope (n: 1, f: 256, h: 16, w: 16) sum (r: 3, s: 3)
         %t[f floordiv 64, r, s, f mod 64, h + 2 * r - 2, w + 2 * s - 2] : tensor<1x256x16x16xf32>
  func.return %y : tensor<1x256x16x16xf32>
}
