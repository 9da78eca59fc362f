// The activation does not see the heads; the batch is one product.
builtin.module {
  func.func @main(%x: tensor<2x30x96xf32> {isoform.name = "x"}) -> (tensor<2x30x48xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %x {shape = [60, 96]} : tensor<60x96xf32>
    %1 = graph.constant dense<5.000000e-01> : tensor<f32>
    %2 = graph.broadcast %1 {shape = [60, 96], dims = []} : tensor<60x96xf32>
    %3 = graph.mul %0, %2 : tensor<60x96xf32>
    %4 = graph.elu %3 : tensor<60x96xf32>
    %w = graph.weight @w : tensor<96x48xf32>
    %5 = graph.matmul %4, %w : tensor<60x48xf32>
    %6 = graph.reshape %5 {shape = [2, 30, 48]} : tensor<2x30x48xf32>
    func.return %6 : tensor<2x30x48xf32>
  }
}
