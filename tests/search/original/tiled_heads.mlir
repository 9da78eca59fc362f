builtin.module {
  func.func @main(%q: tensor<1x6x48x32xf32> {isoform.name = "q"}, %k: tensor<1x2x48x32xf32> {isoform.name = "k"}) -> (tensor<1x6x48x48xf32> {isoform.name = "y"}) {
    %0 = graph.concat %k, %k, %k {axis = 1} : tensor<1x6x48x32xf32>
    %1 = graph.matmul %q, %0 {transpose_b = true} : tensor<1x6x48x48xf32>
    func.return %1 : tensor<1x6x48x48xf32>
  }
}
