// EinNet's Figure 3a: one product for the nine taps of the 3x3 kernel and the one of the 1x1 kernel,
// then the nine are added where they belong.
func.func @main(%x: tensor<1x512x7x7xf32> {isoform.name = "x"}) -> (tensor<1x512x7x7xf32> {isoform.name = "p"}, tensor<1x512x7x7xf32> {isoform.name = "q"}) {
  %w3 = graph.weight @w3 : tensor<512x512x3x3xf32>
  %w3_taps = graph.transpose %w3 {perm = [2, 3, 0, 1]} : tensor<3x3x512x512xf32>
  %w3_rows = graph.reshape %w3_taps {shape = [4608, 512]} : tensor<4608x512xf32>
  %w1 = graph.weight @w1 : tensor<512x512x1x1xf32>
  %w1_rows = graph.reshape %w1 {shape = [512, 512]} : tensor<512x512xf32>
  %rows = graph.concat %w3_rows, %w1_rows {axis = 0} : tensor<5120x512xf32>
  %pixels = graph.reshape %x {shape = [512, 49]} : tensor<512x49xf32>
  %product = graph.matmul %rows, %pixels : tensor<5120x49xf32>
  %t = graph.reshape %product {shape = [5120, 7, 7]} : tensor<5120x7x7xf32>
  %p_sum = algebra.scope (n: 1, f: 512, h: 7, w: 7) sum (r: 3, s: 3)
         %t[1536 * r + 512 * s + f, h + r - 1, w + s - 1] : tensor<1x512x7x7xf32>
  %p = graph.relu %p_sum : tensor<1x512x7x7xf32>
  %q_sum = algebra.scope (n: 1, f: 512, h: 7, w: 7)
         %t[f + 4608, h, w] : tensor<1x512x7x7xf32>
  %q = graph.relu %q_sum : tensor<1x512x7x7xf32>
  func.return %p, %q : tensor<1x512x7x7xf32>, tensor<1x512x7x7xf32>
}
