// Keys and values first: 24 by 24 in place of 512 by 512.
builtin.module {
  func.func @main(%q: tensor<2x4x512x24xf32> {isoform.name = "q"}, %k: tensor<2x4x512x24xf32> {isoform.name = "k"}, %v: tensor<2x4x512x24xf32> {isoform.name = "v"}) -> (tensor<2x4x512x24xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %k, %v {transpose_a = true} : tensor<2x4x24x24xf32>
    %1 = graph.constant dense<5.000000e+00> : tensor<f32>
    %2 = graph.broadcast %1 {shape = [2, 4, 24, 24], dims = []} : tensor<2x4x24x24xf32>
    %3 = graph.div %0, %2 : tensor<2x4x24x24xf32>
    %4 = graph.matmul %q, %3 : tensor<2x4x512x24xf32>
    func.return %4 : tensor<2x4x512x24xf32>
  }
}
