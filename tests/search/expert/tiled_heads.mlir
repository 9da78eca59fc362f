// Copies are read where the keys are.
builtin.module {
  func.func @main(%q: tensor<1x6x48x32xf32> {isoform.name = "q"}, %k: tensor<1x2x48x32xf32> {isoform.name = "k"}) -> (tensor<1x6x48x48xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %k {shape = [2, 48, 32]} : tensor<2x48x32xf32>
    %1 = graph.broadcast %0 {shape = [3, 2, 48, 32], dims = [1, 2, 3]} : tensor<3x2x48x32xf32>
    %2 = graph.reshape %q {shape = [3, 2, 48, 32]} : tensor<3x2x48x32xf32>
    %3 = graph.matmul %2, %1 {transpose_b = true} : tensor<3x2x48x48xf32>
    %4 = graph.reshape %3 {shape = [1, 6, 48, 48]} : tensor<1x6x48x48xf32>
    func.return %4 : tensor<1x6x48x48xf32>
  }
}
