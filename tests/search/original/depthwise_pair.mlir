builtin.module {
  func.func @main(%x: tensor<1x56x19x23xf32> {isoform.name = "x"}) -> (tensor<1x56x19x23xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<56x1x3x3xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 56} : tensor<1x56x19x23xf32>
    %v = graph.weight @v : tensor<56x1x5x5xf32>
    %1 = graph.conv %x, %v {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [1, 1], groups = 56} : tensor<1x56x19x23xf32>
    %2 = graph.add %0, %1 : tensor<1x56x19x23xf32>
    %3 = graph.add %2, %x : tensor<1x56x19x23xf32>
    func.return %3 : tensor<1x56x19x23xf32>
  }
}
