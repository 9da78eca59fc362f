// Four parts of each row, each with a weight of its own: one batch of products.
builtin.module {
  func.func @main(%x: tensor<60x192xf32> {isoform.name = "x"}) -> (tensor<60x160xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %x {shape = [60, 4, 48]} : tensor<60x4x48xf32>
    %1 = graph.transpose %0 {perm = [1, 0, 2]} : tensor<4x60x48xf32>
    %w0 = graph.weight @w0 : tensor<48x40xf32>
    %2 = graph.reshape %w0 {shape = [1, 48, 40]} : tensor<1x48x40xf32>
    %w1 = graph.weight @w1 : tensor<48x40xf32>
    %3 = graph.reshape %w1 {shape = [1, 48, 40]} : tensor<1x48x40xf32>
    %w2 = graph.weight @w2 : tensor<48x40xf32>
    %4 = graph.reshape %w2 {shape = [1, 48, 40]} : tensor<1x48x40xf32>
    %w3 = graph.weight @w3 : tensor<48x40xf32>
    %5 = graph.reshape %w3 {shape = [1, 48, 40]} : tensor<1x48x40xf32>
    %6 = graph.concat %2, %3, %4, %5 {axis = 0} : tensor<4x48x40xf32>
    %7 = graph.matmul %1, %6 : tensor<4x60x40xf32>
    %8 = graph.transpose %7 {perm = [1, 0, 2]} : tensor<60x4x40xf32>
    %9 = graph.reshape %8 {shape = [60, 160]} : tensor<60x160xf32>
    func.return %9 : tensor<60x160xf32>
  }
}
