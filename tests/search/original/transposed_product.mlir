builtin.module {
  func.func @main(%a: tensor<4x60x80xf32> {isoform.name = "a"}, %c: tensor<4x80x50xf32> {isoform.name = "c"}) -> (tensor<4x60x50xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %c {perm = [0, 2, 1]} : tensor<4x50x80xf32>
    %1 = graph.transpose %a {perm = [0, 2, 1]} : tensor<4x80x60xf32>
    %2 = graph.matmul %0, %1 : tensor<4x50x60xf32>
    %3 = graph.transpose %2 {perm = [0, 2, 1]} : tensor<4x60x50xf32>
    %4 = graph.relu %3 : tensor<4x60x50xf32>
    func.return %4 : tensor<4x60x50xf32>
  }
}
