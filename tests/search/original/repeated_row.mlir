builtin.module {
  func.func @main(%v: tensor<256xf32> {isoform.name = "v"}) -> (tensor<200x96xf32> {isoform.name = "y"}) {
    %0 = graph.broadcast %v {shape = [200, 256], dims = [1]} : tensor<200x256xf32>
    %w = graph.weight @w : tensor<256x96xf32>
    %1 = graph.matmul %0, %w : tensor<200x96xf32>
    func.return %1 : tensor<200x96xf32>
  }
}
