// (Q K^T) V = Q (K^T V): no 1024 x 1024 product.
func.func @main(%q: tensor<1024x32xf32> {isoform.name = "q"}, %k: tensor<1024x32xf32> {isoform.name = "k"}, %v: tensor<1024x32xf32> {isoform.name = "v"}) -> (tensor<1024x32xf32> {isoform.name = "y"}) {
  %kv = graph.matmul %k, %v {transpose_a = true} : tensor<32x32xf32>
  %y = graph.matmul %q, %kv : tensor<1024x32xf32>
  func.return %y : tensor<1024x32xf32>
}
