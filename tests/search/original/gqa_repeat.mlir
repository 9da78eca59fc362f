builtin.module {
  func.func @main(%q: tensor<1x8x64x32xf32> {isoform.name = "q"}, %k: tensor<1x2x64x32xf32> {isoform.name = "k"}) -> (tensor<1x8x64x64xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %k {shape = [1, 2, 1, 64, 32]} : tensor<1x2x1x64x32xf32>
    %1 = graph.broadcast %0 {shape = [1, 2, 4, 64, 32], dims = [0, 1, 2, 3, 4]} : tensor<1x2x4x64x32xf32>
    %2 = graph.reshape %1 {shape = [1, 8, 64, 32]} : tensor<1x8x64x32xf32>
    %3 = graph.matmul %q, %2 {transpose_b = true} : tensor<1x8x64x64xf32>
    func.return %3 : tensor<1x8x64x64xf32>
  }
}
