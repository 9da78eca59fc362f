// One product with the sum and difference of the weights.
builtin.module {
  func.func @main(%x: tensor<90x150xf32> {isoform.name = "x"}) -> (tensor<90x60xf32> {isoform.name = "y"}) {
    %w0 = graph.weight @w0 : tensor<150x60xf32>
    %w1 = graph.weight @w1 : tensor<150x60xf32>
    %w2 = graph.weight @w2 : tensor<150x60xf32>
    %w3 = graph.weight @w3 : tensor<150x60xf32>
    %0 = graph.sub %w0, %w1 : tensor<150x60xf32>
    %1 = graph.add %0, %w2 : tensor<150x60xf32>
    %2 = graph.sub %1, %w3 : tensor<150x60xf32>
    %3 = graph.matmul %x, %2 : tensor<90x60xf32>
    func.return %3 : tensor<90x60xf32>
  }
}
