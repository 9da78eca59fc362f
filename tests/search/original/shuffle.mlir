builtin.module {
  func.func @main(%x: tensor<1x48x14x14xf32> {isoform.name = "x"}) -> (tensor<1x64x14x14xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %x {shape = [1, 4, 12, 14, 14]} : tensor<1x4x12x14x14xf32>
    %1 = graph.transpose %0 {perm = [0, 2, 1, 3, 4]} : tensor<1x12x4x14x14xf32>
    %2 = graph.reshape %1 {shape = [1, 48, 14, 14]} : tensor<1x48x14x14xf32>
    %w = graph.weight @w : tensor<64x48x1x1xf32>
    %3 = graph.conv %2, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x14x14xf32>
    func.return %3 : tensor<1x64x14x14xf32>
  }
}
