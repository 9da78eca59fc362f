// Scale and shift go into the weight and the bias.
builtin.module {
  func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x96x28x28xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x64x1x1xf32>
    %g = graph.weight @g : tensor<64xf32>
    %0 = graph.broadcast %g {shape = [96, 64, 1, 1], dims = [1]} : tensor<96x64x1x1xf32>
    %1 = graph.mul %w, %0 : tensor<96x64x1x1xf32>
    %c = graph.weight @c : tensor<96xf32>
    %2 = graph.reshape %w {shape = [96, 64]} : tensor<96x64xf32>
    %o = graph.weight @o : tensor<64xf32>
    %3 = graph.reshape %o {shape = [64, 1]} : tensor<64x1xf32>
    %4 = graph.matmul %2, %3 : tensor<96x1xf32>
    %5 = graph.reshape %4 {shape = [96]} : tensor<96xf32>
    %6 = graph.add %c, %5 : tensor<96xf32>
    %7 = graph.conv %x, %1, %6 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x96x28x28xf32>
    func.return %7 : tensor<1x96x28x28xf32>
  }
}
