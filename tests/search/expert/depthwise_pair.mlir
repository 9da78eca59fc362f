// One depthwise kernel for both and the identity.
builtin.module {
  func.func @main(%x: tensor<1x56x19x23xf32> {isoform.name = "x"}) -> (tensor<1x56x19x23xf32> {isoform.name = "y"}) {
    %v = graph.weight @v : tensor<56x1x5x5xf32>
    %w = graph.weight @w : tensor<56x1x3x3xf32>
    %0 = graph.pad %w {pads = [0, 0, 1, 1, 0, 0, 1, 1]} : tensor<56x1x5x5xf32>
    %1 = graph.add %v, %0 : tensor<56x1x5x5xf32>
    %2 = graph.constant dense<1.000000e+00> : tensor<f32>
    %3 = graph.broadcast %2 {shape = [56, 1, 1, 1], dims = []} : tensor<56x1x1x1xf32>
    %4 = graph.pad %3 {pads = [0, 0, 2, 2, 0, 0, 2, 2]} : tensor<56x1x5x5xf32>
    %5 = graph.add %1, %4 : tensor<56x1x5x5xf32>
    %6 = graph.conv %x, %5 {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [1, 1], groups = 56} : tensor<1x56x19x23xf32>
    func.return %6 : tensor<1x56x19x23xf32>
  }
}
