// A sum of products of all pairs is a batch of products.
builtin.module {
  func.func @main(%a: tensor<4x32x48xf32> {isoform.name = "a"}, %c: tensor<4x48x40xf32> {isoform.name = "c"}) -> (tensor<4x32x40xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %c : tensor<4x32x40xf32>
    func.return %0 : tensor<4x32x40xf32>
  }
}
