// A shuffle of channels before a convolution is one of its weights.
builtin.module {
  func.func @main(%x: tensor<1x48x14x14xf32> {isoform.name = "x"}) -> (tensor<1x64x14x14xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x48x1x1xf32>
    %0 = graph.reshape %w {shape = [64, 12, 4, 1, 1]} : tensor<64x12x4x1x1xf32>
    %1 = graph.transpose %0 {perm = [0, 2, 1, 3, 4]} : tensor<64x4x12x1x1xf32>
    %2 = graph.reshape %1 {shape = [64, 48, 1, 1]} : tensor<64x48x1x1xf32>
    %3 = graph.conv %x, %2 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x14x14xf32>
    func.return %3 : tensor<1x64x14x14xf32>
  }
}
