builtin.module {
  func.func @main(%a: tensor<200x150xf32> {isoform.name = "a"}, %c: tensor<150x170xf32> {isoform.name = "c"}, %d: tensor<170x130xf32> {isoform.name = "d"}, %v: tensor<130x3xf32> {isoform.name = "v"}) -> (tensor<200x3xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %c : tensor<200x170xf32>
    %1 = graph.matmul %0, %d : tensor<200x130xf32>
    %2 = graph.matmul %1, %v : tensor<200x3xf32>
    func.return %2 : tensor<200x3xf32>
  }
}
