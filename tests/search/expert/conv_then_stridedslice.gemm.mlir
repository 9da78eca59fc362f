// One product for all taps, then the places that are kept add theirs.
func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x64x14x14xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<64x64x3x3xf32>
  %w_taps = graph.transpose %w {perm = [2, 3, 0, 1]} : tensor<3x3x64x64xf32>
  %rows = graph.reshape %w_taps {shape = [576, 64]} : tensor<576x64xf32>
  %pixels = graph.reshape %x {shape = [64, 784]} : tensor<64x784xf32>
  %product = graph.matmul %rows, %pixels : tensor<576x784xf32>
  %t = graph.reshape %product {shape = [576, 28, 28]} : tensor<576x28x28xf32>
  %y = algebra.scope (n: 1, f: 64, h: 14, w: 14) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f, 2 * h + r - 1, 2 * w + s - 1] : tensor<1x64x14x14xf32>
  func.return %y : tensor<1x64x14x14xf32>
}
