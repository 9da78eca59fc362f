// A row from the left: products of a row and a matrix alone.
builtin.module {
  func.func @main(%a: tensor<150x170xf32> {isoform.name = "a"}, %c: tensor<170x130xf32> {isoform.name = "c"}, %d: tensor<130x90xf32> {isoform.name = "d"}, %v: tensor<1x150xf32> {isoform.name = "v"}) -> (tensor<1x90xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %v, %a : tensor<1x170xf32>
    %1 = graph.matmul %0, %c : tensor<1x130xf32>
    %2 = graph.matmul %1, %d : tensor<1x90xf32>
    func.return %2 : tensor<1x90xf32>
  }
}
