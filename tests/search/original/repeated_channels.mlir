builtin.module {
  func.func @main(%x: tensor<1x32x18x18xf32> {isoform.name = "x"}) -> (tensor<1x48x18x18xf32> {isoform.name = "y"}) {
    %0 = graph.broadcast %x {shape = [1, 32, 3, 18, 18], dims = [0, 1, 3, 4]} : tensor<1x32x3x18x18xf32>
    %1 = graph.reshape %0 {shape = [1, 96, 18, 18]} : tensor<1x96x18x18xf32>
    %w = graph.weight @w : tensor<48x96x3x3xf32>
    %2 = graph.conv %1, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x48x18x18xf32>
    func.return %2 : tensor<1x48x18x18xf32>
  }
}
