builtin.module {
  func.func @main(%x: tensor<90x150xf32> {isoform.name = "x"}) -> (tensor<90x60xf32> {isoform.name = "y"}) {
    %w0 = graph.weight @w0 : tensor<150x60xf32>
    %0 = graph.matmul %x, %w0 : tensor<90x60xf32>
    %w1 = graph.weight @w1 : tensor<150x60xf32>
    %1 = graph.matmul %x, %w1 : tensor<90x60xf32>
    %w2 = graph.weight @w2 : tensor<150x60xf32>
    %2 = graph.matmul %x, %w2 : tensor<90x60xf32>
    %w3 = graph.weight @w3 : tensor<150x60xf32>
    %3 = graph.matmul %x, %w3 : tensor<90x60xf32>
    %4 = graph.sub %0, %1 : tensor<90x60xf32>
    %5 = graph.add %4, %2 : tensor<90x60xf32>
    %6 = graph.sub %5, %3 : tensor<90x60xf32>
    func.return %6 : tensor<90x60xf32>
  }
}
