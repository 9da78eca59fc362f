// Rows less their means: the weight's columns lose theirs instead, and the batch is one product.
builtin.module {
  func.func @main(%x: tensor<4x60x96xf32> {isoform.name = "x"}) -> (tensor<4x60x64xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x64xf32>
    %0 = graph.reduce_mean %w {axes = [0]} : tensor<1x64xf32>
    %1 = graph.broadcast %0 {shape = [96, 64], dims = [0, 1]} : tensor<96x64xf32>
    %2 = graph.sub %w, %1 : tensor<96x64xf32>
    %3 = graph.reshape %x {shape = [240, 96]} : tensor<240x96xf32>
    %4 = graph.matmul %3, %2 : tensor<240x64xf32>
    %5 = graph.reshape %4 {shape = [4, 60, 64]} : tensor<4x60x64xf32>
    func.return %5 : tensor<4x60x64xf32>
  }
}
