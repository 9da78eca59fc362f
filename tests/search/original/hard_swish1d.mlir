builtin.module {
  func.func @main(%x: tensor<2x77x40xf32> {isoform.name = "x"}) -> (tensor<2x77x72xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<72x40x1xf32>
    %c = graph.weight @c : tensor<72xf32>
    %0 = graph.transpose %x {perm = [0, 2, 1]} : tensor<2x40x77xf32>
    %1 = graph.conv %0, %w, %c {strides = [1], pads = [0, 0], dilations = [1]} : tensor<2x72x77xf32>
    %2 = graph.constant dense<3.000000e+00> : tensor<f32>
    %3 = graph.broadcast %2 {shape = [2, 72, 77], dims = []} : tensor<2x72x77xf32>
    %4 = graph.add %1, %3 : tensor<2x72x77xf32>
    %5 = graph.constant dense<0.000000e+00> : tensor<f32>
    %6 = graph.broadcast %5 {shape = [2, 72, 77], dims = []} : tensor<2x72x77xf32>
    %7 = graph.max %4, %6 : tensor<2x72x77xf32>
    %8 = graph.constant dense<0.166666672> : tensor<f32>
    %9 = graph.broadcast %8 {shape = [2, 72, 77], dims = []} : tensor<2x72x77xf32>
    %10 = graph.constant dense<6.000000e+00> : tensor<f32>
    %11 = graph.broadcast %10 {shape = [2, 72, 77], dims = []} : tensor<2x72x77xf32>
    %12 = graph.min %7, %11 : tensor<2x72x77xf32>
    %13 = graph.mul %9, %12 : tensor<2x72x77xf32>
    %14 = graph.mul %1, %13 : tensor<2x72x77xf32>
    %15 = graph.transpose %14 {perm = [0, 2, 1]} : tensor<2x77x72xf32>
    func.return %15 : tensor<2x77x72xf32>
  }
}
