// Heads that share values are rows of one product.
builtin.module {
  func.func @main(%p: tensor<2x6x40x50xf32> {isoform.name = "p"}, %v: tensor<2x2x50x32xf32> {isoform.name = "v"}) -> (tensor<2x6x40x32xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %p {shape = [2, 2, 120, 50]} : tensor<2x2x120x50xf32>
    %1 = graph.matmul %0, %v : tensor<2x2x120x32xf32>
    %2 = graph.reshape %1 {shape = [2, 6, 40, 32]} : tensor<2x6x40x32xf32>
    func.return %2 : tensor<2x6x40x32xf32>
  }
}
