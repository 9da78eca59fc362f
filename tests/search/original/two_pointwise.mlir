builtin.module {
  func.func @main(%x: tensor<2x12x10x32xf32> {isoform.name = "x"}) -> (tensor<2x12x10x40xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x32x1x1xf32>
    %c = graph.weight @c : tensor<96xf32>
    %v = graph.weight @v : tensor<40x96x1x1xf32>
    %d = graph.weight @d : tensor<40xf32>
    %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : tensor<2x32x12x10xf32>
    %1 = graph.conv %0, %w, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x96x12x10xf32>
    %2 = graph.constant dense<1.000000e-01> : tensor<f32>
    %3 = graph.broadcast %2 {shape = [2, 96, 12, 10], dims = []} : tensor<2x96x12x10xf32>
    %4 = graph.mul %1, %3 : tensor<2x96x12x10xf32>
    %5 = graph.max %1, %4 : tensor<2x96x12x10xf32>
    %6 = graph.conv %5, %v, %d {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x40x12x10xf32>
    %7 = graph.transpose %6 {perm = [0, 2, 3, 1]} : tensor<2x12x10x40xf32>
    func.return %7 : tensor<2x12x10x40xf32>
  }
}
