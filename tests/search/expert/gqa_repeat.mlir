// Queries that share keys are rows of one product: nothing is repeated.
builtin.module {
  func.func @main(%q: tensor<1x8x64x32xf32> {isoform.name = "q"}, %k: tensor<1x2x64x32xf32> {isoform.name = "k"}) -> (tensor<1x8x64x64xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %q {shape = [1, 2, 256, 32]} : tensor<1x2x256x32xf32>
    %1 = graph.matmul %0, %k {transpose_b = true} : tensor<1x2x256x64xf32>
    %2 = graph.reshape %1 {shape = [1, 8, 64, 64]} : tensor<1x8x64x64xf32>
    func.return %2 : tensor<1x8x64x64xf32>
  }
}
