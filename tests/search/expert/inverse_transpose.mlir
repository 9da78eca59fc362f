// The transposes are inverse to one another, and relu does not care about order.
func.func @main(%x: tensor<4x16x16x8xf32> {isoform.name = "x"}) -> (tensor<4x16x16x8xf32> {isoform.name = "y"}) {
  %y = graph.relu %x : tensor<4x16x16x8xf32>
  func.return %y : tensor<4x16x16x8xf32>
}
