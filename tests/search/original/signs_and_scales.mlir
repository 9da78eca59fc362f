builtin.module {
  func.func @main(%x: tensor<66x100xf32> {isoform.name = "x"}) -> (tensor<66x80xf32> {isoform.name = "y"}) {
    %0 = graph.neg %x : tensor<66x100xf32>
    %w = graph.weight @w : tensor<100x80xf32>
    %1 = graph.matmul %0, %w : tensor<66x80xf32>
    %2 = graph.neg %1 : tensor<66x80xf32>
    %3 = graph.constant dense<3.000000e+00> : tensor<f32>
    %4 = graph.broadcast %3 {shape = [66, 80], dims = []} : tensor<66x80xf32>
    %v = graph.weight @v : tensor<100x80xf32>
    %5 = graph.matmul %x, %v : tensor<66x80xf32>
    %6 = graph.mul %4, %5 : tensor<66x80xf32>
    %7 = graph.sub %2, %6 : tensor<66x80xf32>
    func.return %7 : tensor<66x80xf32>
  }
}
