builtin.module {
  func.func @main(%x: tensor<70x90xf32> {isoform.name = "x"}) -> (tensor<70x60xf32> {isoform.name = "y"}) {
    %w1 = graph.weight @w1 : tensor<90x60xf32>
    %0 = graph.matmul %x, %w1 : tensor<70x60xf32>
    %b1 = graph.weight @b1 : tensor<60xf32>
    %1 = graph.broadcast %b1 {shape = [70, 60], dims = [1]} : tensor<70x60xf32>
    %2 = graph.add %0, %1 : tensor<70x60xf32>
    %d = graph.weight @d : tensor<60xf32>
    %3 = graph.broadcast %d {shape = [70, 60], dims = [1]} : tensor<70x60xf32>
    %4 = graph.add %2, %3 : tensor<70x60xf32>
    %5 = graph.constant dense<3.000000e+00> : tensor<f32>
    %6 = graph.broadcast %5 {shape = [70, 60], dims = []} : tensor<70x60xf32>
    %7 = graph.mul %4, %6 : tensor<70x60xf32>
    func.return %7 : tensor<70x60xf32>
  }
}
