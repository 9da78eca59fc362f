builtin.module {
  func.func @main(%x: tensor<2x64x18x18xf32> {isoform.name = "x"}) -> (tensor<2x128xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<128x64x1x1xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x128x18x18xf32>
    %1 = graph.reduce_sum %0 {axes = [2, 3], keep_dims = false} : tensor<2x128xf32>
    func.return %1 : tensor<2x128xf32>
  }
}
