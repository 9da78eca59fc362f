builtin.module {
  func.func @main(%a: tensor<200x300xf32> {isoform.name = "a"}, %c: tensor<300x150xf32> {isoform.name = "c"}) -> (tensor<f32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %c : tensor<200x150xf32>
    %1 = graph.reduce_sum %0 {axes = [0, 1], keep_dims = false} : tensor<f32>
    func.return %1 : tensor<f32>
  }
}
