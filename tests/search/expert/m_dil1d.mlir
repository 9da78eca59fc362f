// One product for all taps, then each result adds its taps where they belong: a plain product needs
// no indices of taps, and the sums are bound by memory.
func.func @main(%x: tensor<1x256x101xf32> {isoform.name = "x"}) -> (tensor<1x256x101xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<256x256x3xf32>
  %w_taps = graph.transpose %w {perm = [2, 0, 1]} : tensor<3x256x256xf32>
  %rows = graph.reshape %w_taps {shape = [768, 256]} : tensor<768x256xf32>
  %pixels = graph.reshape %x {shape = [256, 101]} : tensor<256x101xf32>
  %product = graph.matmul %rows, %pixels : tensor<768x101xf32>
  %t = graph.reshape %product {shape = [768, 101]} : tensor<768x101xf32>
  %y = algebra.scope (n: 1, f: 256, l: 101) sum (r: 3)
         %t[256 * r + f, l + 4 * r - 4] : tensor<1x256x101xf32>
  func.return %y : tensor<1x256x101xf32>
}
