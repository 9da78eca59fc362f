// The sum over the rows of A C is (the sum over the rows of A) C: 512 times fewer multiplications.
func.func @main(%a: tensor<512x512xf32> {isoform.name = "a"}, %c: tensor<512x512xf32> {isoform.name = "c"}) -> (tensor<1x512xf32> {isoform.name = "y"}) {
  %rows = graph.reduce_sum %a {axes = [0]} : tensor<1x512xf32>
  %y = graph.matmul %rows, %c : tensor<1x512xf32>
  func.return %y : tensor<1x512xf32>
}
