// Pixels are rows: two products, nothing moves.
builtin.module {
  func.func @main(%x: tensor<2x12x10x32xf32> {isoform.name = "x"}) -> (tensor<2x12x10x40xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x32x1x1xf32>
    %v = graph.weight @v : tensor<40x96x1x1xf32>
    %c = graph.weight @c : tensor<96xf32>
    %d = graph.weight @d : tensor<40xf32>
    %0 = graph.reshape %x {shape = [240, 32]} : tensor<240x32xf32>
    %1 = graph.reshape %w {shape = [96, 32]} : tensor<96x32xf32>
    %2 = graph.matmul %0, %1 {transpose_b = true} : tensor<240x96xf32>
    %3 = graph.broadcast %c {shape = [240, 96], dims = [1]} : tensor<240x96xf32>
    %4 = graph.add %2, %3 : tensor<240x96xf32>
    %5 = graph.constant dense<1.000000e-01> : tensor<f32>
    %6 = graph.broadcast %5 {shape = [240, 96], dims = []} : tensor<240x96xf32>
    %7 = graph.mul %4, %6 : tensor<240x96xf32>
    %8 = graph.max %4, %7 : tensor<240x96xf32>
    %9 = graph.reshape %v {shape = [40, 96]} : tensor<40x96xf32>
    %10 = graph.matmul %8, %9 {transpose_b = true} : tensor<240x40xf32>
    %11 = graph.broadcast %d {shape = [240, 40], dims = [1]} : tensor<240x40xf32>
    %12 = graph.add %10, %11 : tensor<240x40xf32>
    %13 = graph.reshape %12 {shape = [2, 12, 10, 40]} : tensor<2x12x10x40xf32>
    func.return %13 : tensor<2x12x10x40xf32>
  }
}
