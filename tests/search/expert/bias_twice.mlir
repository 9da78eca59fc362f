// Biases and the scale go into the layer.
builtin.module {
  func.func @main(%x: tensor<70x90xf32> {isoform.name = "x"}) -> (tensor<70x60xf32> {isoform.name = "y"}) {
    %w1 = graph.weight @w1 : tensor<90x60xf32>
    %0 = graph.constant dense<3.000000e+00> : tensor<f32>
    %1 = graph.broadcast %0 {shape = [90, 60], dims = []} : tensor<90x60xf32>
    %2 = graph.mul %w1, %1 : tensor<90x60xf32>
    %b1 = graph.weight @b1 : tensor<60xf32>
    %d = graph.weight @d : tensor<60xf32>
    %3 = graph.add %b1, %d : tensor<60xf32>
    %4 = graph.constant dense<3.000000e+00> : tensor<f32>
    %5 = graph.broadcast %4 {shape = [60], dims = []} : tensor<60xf32>
    %6 = graph.mul %3, %5 : tensor<60xf32>
    %7 = graph.matmul %x, %2 : tensor<70x60xf32>
    %8 = graph.broadcast %6 {shape = [70, 60], dims = [1]} : tensor<70x60xf32>
    %9 = graph.add %7, %8 : tensor<70x60xf32>
    func.return %9 : tensor<70x60xf32>
  }
}
