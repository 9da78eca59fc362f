// Where channels are last a pointwise convolution is a product as the image lies.
builtin.module {
  func.func @main(%x: tensor<2x14x14x64xf32> {isoform.name = "x"}) -> (tensor<2x14x14x96xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x64x1x1xf32>
    %0 = graph.reshape %x {shape = [392, 64]} : tensor<392x64xf32>
    %1 = graph.reshape %w {shape = [96, 64]} : tensor<96x64xf32>
    %2 = graph.matmul %0, %1 {transpose_b = true} : tensor<392x96xf32>
    %3 = graph.reshape %2 {shape = [2, 14, 14, 96]} : tensor<2x14x14x96xf32>
    %4 = graph.relu %3 : tensor<2x14x14x96xf32>
    func.return %4 : tensor<2x14x14x96xf32>
  }
}
