// Rows from the start: no transposes.
builtin.module {
  func.func @main(%x: tensor<70x90xf32> {isoform.name = "x"}) -> (tensor<70x48xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<48x90xf32>
    %0 = graph.matmul %x, %w {transpose_b = true} : tensor<70x48xf32>
    %c = graph.weight @c : tensor<48xf32>
    %1 = graph.broadcast %c {shape = [70, 48], dims = [1]} : tensor<70x48xf32>
    %2 = graph.add %0, %1 : tensor<70x48xf32>
    %3 = graph.tanh %2 : tensor<70x48xf32>
    func.return %3 : tensor<70x48xf32>
  }
}
