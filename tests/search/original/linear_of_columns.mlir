builtin.module {
  func.func @main(%x: tensor<70x90xf32> {isoform.name = "x"}) -> (tensor<70x48xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %x {perm = [1, 0]} : tensor<90x70xf32>
    %w = graph.weight @w : tensor<48x90xf32>
    %1 = graph.matmul %w, %0 : tensor<48x70xf32>
    %c = graph.weight @c : tensor<48xf32>
    %2 = graph.broadcast %c {shape = [48, 70], dims = [0]} : tensor<48x70xf32>
    %3 = graph.add %1, %2 : tensor<48x70xf32>
    %4 = graph.tanh %3 : tensor<48x70xf32>
    %5 = graph.transpose %4 {perm = [1, 0]} : tensor<70x48xf32>
    func.return %5 : tensor<70x48xf32>
  }
}
