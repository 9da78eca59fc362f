// Heads that share their keys are rows of one product.
builtin.module {
  func.func @main(%q: tensor<2x8x40x32xf32> {isoform.name = "q"}, %k: tensor<2x1x40x32xf32> {isoform.name = "k"}) -> (tensor<2x8x40x40xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %q {shape = [2, 320, 32]} : tensor<2x320x32xf32>
    %1 = graph.reshape %k {shape = [2, 40, 32]} : tensor<2x40x32xf32>
    %2 = graph.matmul %0, %1 {transpose_b = true} : tensor<2x320x40xf32>
    %3 = graph.reshape %2 {shape = [2, 8, 40, 40]} : tensor<2x8x40x40xf32>
    func.return %3 : tensor<2x8x40x40xf32>
  }
}
