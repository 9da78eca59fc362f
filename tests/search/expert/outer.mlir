// The row meets the matrix first.
builtin.module {
  func.func @main(%u: tensor<200x1xf32> {isoform.name = "u"}, %v: tensor<1x150xf32> {isoform.name = "v"}, %c: tensor<150x120xf32> {isoform.name = "c"}) -> (tensor<200x120xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %v, %c : tensor<1x120xf32>
    %1 = graph.matmul %u, %0 : tensor<200x120xf32>
    func.return %1 : tensor<200x120xf32>
  }
}
