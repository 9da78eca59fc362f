// Copies of a channel meet the sum of their filters.
builtin.module {
  func.func @main(%x: tensor<1x32x18x18xf32> {isoform.name = "x"}) -> (tensor<1x48x18x18xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<48x96x3x3xf32>
    %0 = graph.reshape %w {shape = [48, 32, 3, 3, 3]} : tensor<48x32x3x3x3xf32>
    %1 = graph.reduce_sum %0 {axes = [2], keep_dims = false} : tensor<48x32x3x3xf32>
    %2 = graph.conv %x, %1 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x48x18x18xf32>
    func.return %2 : tensor<1x48x18x18xf32>
  }
}
