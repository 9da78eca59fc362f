// Signs and scales go into one weight.
builtin.module {
  func.func @main(%x: tensor<66x100xf32> {isoform.name = "x"}) -> (tensor<66x80xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<100x80xf32>
    %0 = graph.constant dense<3.000000e+00> : tensor<f32>
    %1 = graph.broadcast %0 {shape = [100, 80], dims = []} : tensor<100x80xf32>
    %v = graph.weight @v : tensor<100x80xf32>
    %2 = graph.mul %1, %v : tensor<100x80xf32>
    %3 = graph.sub %w, %2 : tensor<100x80xf32>
    %4 = graph.matmul %x, %3 : tensor<66x80xf32>
    func.return %4 : tensor<66x80xf32>
  }
}
