builtin.module {
  func.func @main(%u: tensor<200x1xf32> {isoform.name = "u"}, %v: tensor<1x150xf32> {isoform.name = "v"}, %c: tensor<150x120xf32> {isoform.name = "c"}) -> (tensor<200x120xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %u, %v : tensor<200x150xf32>
    %1 = graph.matmul %0, %c : tensor<200x120xf32>
    func.return %1 : tensor<200x120xf32>
  }
}
