builtin.module {
  func.func @main(%a: tensor<150x170xf32> {isoform.name = "a"}, %c: tensor<170x130xf32> {isoform.name = "c"}, %d: tensor<130x90xf32> {isoform.name = "d"}, %v: tensor<1x150xf32> {isoform.name = "v"}) -> (tensor<1x90xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %c : tensor<150x130xf32>
    %1 = graph.matmul %0, %d : tensor<150x90xf32>
    %2 = graph.matmul %v, %1 : tensor<1x90xf32>
    func.return %2 : tensor<1x90xf32>
  }
}
