// Rows of several inputs with one weight are one product.
builtin.module {
  func.func @main(%p: tensor<30x80xf32> {isoform.name = "p"}, %q: tensor<50x80xf32> {isoform.name = "q"}, %r: tensor<20x80xf32> {isoform.name = "r"}) -> (tensor<100x64xf32> {isoform.name = "y"}) {
    %0 = graph.concat %p, %q, %r {axis = 0} : tensor<100x80xf32>
    %w = graph.weight @w : tensor<80x64xf32>
    %1 = graph.matmul %0, %w : tensor<100x64xf32>
    func.return %1 : tensor<100x64xf32>
  }
}
