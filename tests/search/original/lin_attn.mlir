builtin.module {
  func.func @main(%q: tensor<1024x32xf32> {isoform.name = "q"}, %k: tensor<1024x32xf32> {isoform.name = "k"}, %v: tensor<1024x32xf32> {isoform.name = "v"}) -> (tensor<1024x32xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %q, %k {transpose_b = true} : tensor<1024x1024xf32>
    %1 = graph.matmul %0, %v : tensor<1024x32xf32>
    func.return %1 : tensor<1024x32xf32>
  }
}
