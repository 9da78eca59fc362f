builtin.module {
  func.func @main(%x: tensor<64x512xf32> {isoform.name = "x"}) -> (tensor<64x512xf32> {isoform.name = "y"}) {
    %0 = graph.constant dense<1.250000e-01> : tensor<f32>
    %1 = graph.broadcast %0 {shape = [64, 512], dims = []} : tensor<64x512xf32>
    %2 = graph.mul %x, %1 : tensor<64x512xf32>
    %w = graph.weight @w : tensor<512x512xf32>
    %3 = graph.matmul %2, %w : tensor<64x512xf32>
    func.return %3 : tensor<64x512xf32>
  }
}
