builtin.module {
  func.func @main(%x: tensor<2x14x14x64xf32> {isoform.name = "x"}) -> (tensor<2x14x14x96xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : tensor<2x64x14x14xf32>
    %w = graph.weight @w : tensor<96x64x1x1xf32>
    %1 = graph.conv %0, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x96x14x14xf32>
    %2 = graph.relu %1 : tensor<2x96x14x14xf32>
    %3 = graph.transpose %2 {perm = [0, 2, 3, 1]} : tensor<2x14x14x96xf32>
    func.return %3 : tensor<2x14x14x96xf32>
  }
}
