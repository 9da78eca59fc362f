// The sum of all entries of a product is a product of a row of sums and a column of sums.
builtin.module {
  func.func @main(%a: tensor<200x300xf32> {isoform.name = "a"}, %c: tensor<300x150xf32> {isoform.name = "c"}) -> (tensor<f32> {isoform.name = "y"}) {
    %0 = graph.reduce_sum %a {axes = [0]} : tensor<1x300xf32>
    %1 = graph.reduce_sum %c {axes = [1]} : tensor<300x1xf32>
    %2 = graph.matmul %0, %1 : tensor<1x1xf32>
    %3 = graph.reshape %2 {shape = []} : tensor<f32>
    func.return %3 : tensor<f32>
  }
}
