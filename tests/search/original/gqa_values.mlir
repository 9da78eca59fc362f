builtin.module {
  func.func @main(%p: tensor<2x6x40x50xf32> {isoform.name = "p"}, %v: tensor<2x2x50x32xf32> {isoform.name = "v"}) -> (tensor<2x6x40x32xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %v {shape = [2, 2, 1, 50, 32]} : tensor<2x2x1x50x32xf32>
    %1 = graph.broadcast %0 {shape = [2, 2, 3, 50, 32], dims = [0, 1, 2, 3, 4]} : tensor<2x2x3x50x32xf32>
    %2 = graph.reshape %1 {shape = [2, 6, 50, 32]} : tensor<2x6x50x32xf32>
    %3 = graph.matmul %p, %2 : tensor<2x6x40x32xf32>
    func.return %3 : tensor<2x6x40x32xf32>
  }
}
