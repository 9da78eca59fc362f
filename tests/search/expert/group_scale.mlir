// The divisors of the channels go into the weight of each group.
builtin.module {
  func.func @main(%x: tensor<1x64x22x18xf32> {isoform.name = "x"}) -> (tensor<1x96x22x18xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x16x3x3xf32>
    %0 = graph.reshape %w {shape = [4, 24, 16, 3, 3]} : tensor<4x24x16x3x3xf32>
    %g = graph.weight @g : tensor<64xf32>
    %1 = graph.reshape %g {shape = [4, 16]} : tensor<4x16xf32>
    %2 = graph.broadcast %1 {shape = [4, 24, 16, 3, 3], dims = [0, 2]} : tensor<4x24x16x3x3xf32>
    %3 = graph.div %0, %2 : tensor<4x24x16x3x3xf32>
    %4 = graph.reshape %3 {shape = [96, 16, 3, 3]} : tensor<96x16x3x3xf32>
    %5 = graph.conv %x, %4 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 4} : tensor<1x96x22x18xf32>
    func.return %5 : tensor<1x96x22x18xf32>
  }
}
