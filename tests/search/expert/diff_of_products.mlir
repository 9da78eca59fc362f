// The second product is the first with another right side, transposed.
builtin.module {
  func.func @main(%a: tensor<3x40x60xf32> {isoform.name = "a"}, %d: tensor<3x50x60xf32> {isoform.name = "d"}, %c: tensor<3x60x50xf32> {isoform.name = "c"}) -> (tensor<3x40x50xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %d {perm = [0, 2, 1]} : tensor<3x60x50xf32>
    %1 = graph.sub %c, %0 : tensor<3x60x50xf32>
    %2 = graph.matmul %a, %1 : tensor<3x40x50xf32>
    func.return %2 : tensor<3x40x50xf32>
  }
}
