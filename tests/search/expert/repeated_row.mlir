// One row is multiplied, and repeated afterwards.
builtin.module {
  func.func @main(%v: tensor<256xf32> {isoform.name = "v"}) -> (tensor<200x96xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %v {shape = [1, 256]} : tensor<1x256xf32>
    %w = graph.weight @w : tensor<256x96xf32>
    %1 = graph.matmul %0, %w : tensor<1x96xf32>
    %2 = graph.reshape %1 {shape = [96]} : tensor<96xf32>
    %3 = graph.broadcast %2 {shape = [200, 96], dims = [1]} : tensor<200x96xf32>
    func.return %3 : tensor<200x96xf32>
  }
}
