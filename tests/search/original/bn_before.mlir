builtin.module {
  func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x96x28x28xf32> {isoform.name = "y"}) {
    %g = graph.weight @g : tensor<64xf32>
    %0 = graph.broadcast %g {shape = [1, 64, 28, 28], dims = [1]} : tensor<1x64x28x28xf32>
    %1 = graph.mul %x, %0 : tensor<1x64x28x28xf32>
    %o = graph.weight @o : tensor<64xf32>
    %2 = graph.broadcast %o {shape = [1, 64, 28, 28], dims = [1]} : tensor<1x64x28x28xf32>
    %3 = graph.add %1, %2 : tensor<1x64x28x28xf32>
    %w = graph.weight @w : tensor<96x64x1x1xf32>
    %c = graph.weight @c : tensor<96xf32>
    %4 = graph.conv %3, %w, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x96x28x28xf32>
    func.return %4 : tensor<1x96x28x28xf32>
  }
}
