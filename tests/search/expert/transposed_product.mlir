// (C' A')' = A C.
builtin.module {
  func.func @main(%a: tensor<4x60x80xf32> {isoform.name = "a"}, %c: tensor<4x80x50xf32> {isoform.name = "c"}) -> (tensor<4x60x50xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %c : tensor<4x60x50xf32>
    %1 = graph.relu %0 : tensor<4x60x50xf32>
    func.return %1 : tensor<4x60x50xf32>
  }
}
