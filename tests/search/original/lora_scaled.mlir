builtin.module {
  func.func @main(%x: tensor<2x50x320xf32> {isoform.name = "x"}) -> (tensor<2x50x160xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %x {shape = [100, 320]} : tensor<100x320xf32>
    %w = graph.weight @w : tensor<160x320xf32>
    %1 = graph.matmul %0, %w {transpose_b = true} : tensor<100x160xf32>
    %a = graph.weight @a : tensor<8x320xf32>
    %2 = graph.matmul %0, %a {transpose_b = true} : tensor<100x8xf32>
    %b = graph.weight @b : tensor<160x8xf32>
    %3 = graph.matmul %2, %b {transpose_b = true} : tensor<100x160xf32>
    %4 = graph.constant dense<2.000000e+00> : tensor<f32>
    %5 = graph.broadcast %4 {shape = [100, 160], dims = []} : tensor<100x160xf32>
    %6 = graph.mul %5, %3 : tensor<100x160xf32>
    %7 = graph.add %1, %6 : tensor<100x160xf32>
    %8 = graph.reshape %7 {shape = [2, 50, 160]} : tensor<2x50x160xf32>
    func.return %8 : tensor<2x50x160xf32>
  }
}
