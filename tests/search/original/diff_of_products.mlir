builtin.module {
  func.func @main(%a: tensor<3x40x60xf32> {isoform.name = "a"}, %d: tensor<3x50x60xf32> {isoform.name = "d"}, %c: tensor<3x60x50xf32> {isoform.name = "c"}) -> (tensor<3x40x50xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %d, %a {transpose_b = true} : tensor<3x50x40xf32>
    %1 = graph.matmul %a, %c : tensor<3x40x50xf32>
    %2 = graph.transpose %0 {perm = [0, 2, 1]} : tensor<3x40x50xf32>
    %3 = graph.sub %1, %2 : tensor<3x40x50xf32>
    func.return %3 : tensor<3x40x50xf32>
  }
}
