// The columns of the weight and the biases are summed before.
builtin.module {
  func.func @main(%x: tensor<70x128xf32> {isoform.name = "x"}) -> (tensor<70x1xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<128x200xf32>
    %c = graph.weight @c : tensor<200xf32>
    %0 = graph.reduce_sum %w {axes = [1]} : tensor<128x1xf32>
    %1 = graph.matmul %x, %0 : tensor<70x1xf32>
    %2 = graph.reduce_sum %c {axes = [0]} : tensor<1xf32>
    %3 = graph.broadcast %2 {shape = [70, 1], dims = [1]} : tensor<70x1xf32>
    %4 = graph.add %1, %3 : tensor<70x1xf32>
    func.return %4 : tensor<70x1xf32>
  }
}
