// Channels last need no move: one product of rows, a bias and the rest behind it.
builtin.module {
  func.func @main(%x: tensor<2x77x40xf32> {isoform.name = "x"}) -> (tensor<2x77x72xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<72x40x1xf32>
    %c = graph.weight @c : tensor<72xf32>
    %0 = graph.reshape %x {shape = [154, 40]} : tensor<154x40xf32>
    %1 = graph.reshape %w {shape = [72, 40]} : tensor<72x40xf32>
    %2 = graph.matmul %0, %1 {transpose_b = true} : tensor<154x72xf32>
    %3 = graph.broadcast %c {shape = [154, 72], dims = [1]} : tensor<154x72xf32>
    %4 = graph.add %2, %3 : tensor<154x72xf32>
    %5 = graph.constant dense<0.166666672> : tensor<f32>
    %6 = graph.broadcast %5 {shape = [154, 72], dims = []} : tensor<154x72xf32>
    %7 = graph.constant dense<3.000000e+00> : tensor<f32>
    %8 = graph.broadcast %7 {shape = [154, 72], dims = []} : tensor<154x72xf32>
    %9 = graph.add %4, %8 : tensor<154x72xf32>
    %10 = graph.constant dense<0.000000e+00> : tensor<f32>
    %11 = graph.broadcast %10 {shape = [154, 72], dims = []} : tensor<154x72xf32>
    %12 = graph.max %9, %11 : tensor<154x72xf32>
    %13 = graph.constant dense<6.000000e+00> : tensor<f32>
    %14 = graph.broadcast %13 {shape = [154, 72], dims = []} : tensor<154x72xf32>
    %15 = graph.min %12, %14 : tensor<154x72xf32>
    %16 = graph.mul %6, %15 : tensor<154x72xf32>
    %17 = graph.mul %4, %16 : tensor<154x72xf32>
    %18 = graph.reshape %17 {shape = [2, 77, 72]} : tensor<2x77x72xf32>
    func.return %18 : tensor<2x77x72xf32>
  }
}
