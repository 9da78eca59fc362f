builtin.module {
  func.func @main(%q: tensor<50x32xf32> {isoform.name = "q"}, %k: tensor<60x32xf32> {isoform.name = "k"}, %xu: tensor<60x40xf32> {isoform.name = "xu"}, %xv: tensor<60x40xf32> {isoform.name = "xv"}) -> (tensor<50x40xf32> {isoform.name = "u"}, tensor<50x40xf32> {isoform.name = "v"}) {
    %0 = graph.matmul %q, %k {transpose_b = true} : tensor<50x60xf32>
    %1 = graph.softmax %0 {axis = 1} : tensor<50x60xf32>
    %2 = graph.matmul %1, %xu : tensor<50x40xf32>
    %3 = graph.matmul %q, %k {transpose_b = true} : tensor<50x60xf32>
    %4 = graph.softmax %3 {axis = 1} : tensor<50x60xf32>
    %5 = graph.matmul %4, %xv : tensor<50x40xf32>
    func.return %2, %5 : tensor<50x40xf32>, tensor<50x40xf32>
  }
}
