// The low rank and its scale are part of the weight.
builtin.module {
  func.func @main(%x: tensor<2x50x320xf32> {isoform.name = "x"}) -> (tensor<2x50x160xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %x {shape = [100, 320]} : tensor<100x320xf32>
    %w = graph.weight @w : tensor<160x320xf32>
    %b = graph.weight @b : tensor<160x8xf32>
    %a = graph.weight @a : tensor<8x320xf32>
    %1 = graph.matmul %b, %a : tensor<160x320xf32>
    %2 = graph.constant dense<2.000000e+00> : tensor<f32>
    %3 = graph.broadcast %2 {shape = [160, 320], dims = []} : tensor<160x320xf32>
    %4 = graph.mul %1, %3 : tensor<160x320xf32>
    %5 = graph.add %w, %4 : tensor<160x320xf32>
    %6 = graph.matmul %0, %5 {transpose_b = true} : tensor<100x160xf32>
    %7 = graph.reshape %6 {shape = [2, 50, 160]} : tensor<2x50x160xf32>
    func.return %7 : tensor<2x50x160xf32>
  }
}
