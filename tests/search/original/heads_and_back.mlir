builtin.module {
  func.func @main(%x: tensor<2x30x96xf32> {isoform.name = "x"}) -> (tensor<2x30x48xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %x {shape = [2, 30, 6, 16]} : tensor<2x30x6x16xf32>
    %1 = graph.transpose %0 {perm = [0, 2, 1, 3]} : tensor<2x6x30x16xf32>
    %2 = graph.constant dense<5.000000e-01> : tensor<f32>
    %3 = graph.broadcast %2 {shape = [2, 6, 30, 16], dims = []} : tensor<2x6x30x16xf32>
    %4 = graph.mul %1, %3 : tensor<2x6x30x16xf32>
    %5 = graph.elu %4 : tensor<2x6x30x16xf32>
    %6 = graph.transpose %5 {perm = [0, 2, 1, 3]} : tensor<2x30x6x16xf32>
    %7 = graph.reshape %6 {shape = [2, 30, 96]} : tensor<2x30x96xf32>
    %w = graph.weight @w : tensor<96x48xf32>
    %8 = graph.broadcast %w {shape = [2, 96, 48], dims = [1, 2]} : tensor<2x96x48xf32>
    %9 = graph.matmul %7, %8 : tensor<2x30x48xf32>
    func.return %9 : tensor<2x30x48xf32>
  }
}
