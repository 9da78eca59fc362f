// Rows less their means are a product with a matrix that weights can take.
builtin.module {
  func.func @main(%x: tensor<128x192xf32> {isoform.name = "x"}) -> (tensor<128x64xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<192x64xf32>
    %0 = graph.reduce_mean %w {axes = [0]} : tensor<1x64xf32>
    %1 = graph.broadcast %0 {shape = [192, 64], dims = [0, 1]} : tensor<192x64xf32>
    %2 = graph.sub %w, %1 : tensor<192x64xf32>
    %3 = graph.matmul %x, %2 : tensor<128x64xf32>
    func.return %3 : tensor<128x64xf32>
  }
}
