builtin.module {
  func.func @main(%q: tensor<2x8x40x32xf32> {isoform.name = "q"}, %k: tensor<2x1x40x32xf32> {isoform.name = "k"}) -> (tensor<2x8x40x40xf32> {isoform.name = "y"}) {
    %0 = graph.broadcast %k {shape = [2, 8, 40, 32], dims = [0, 1, 2, 3]} : tensor<2x8x40x32xf32>
    %1 = graph.matmul %q, %0 {transpose_b = true} : tensor<2x8x40x40xf32>
    func.return %1 : tensor<2x8x40x40xf32>
  }
}
