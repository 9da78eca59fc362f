// The batch shares its weight, so its rows are the rows of one product.
func.func @main(%a: tensor<8x64x96xf32> {isoform.name = "a"}) -> (tensor<8x64x128xf32> {isoform.name = "y"}) {
  %rows = graph.reshape %a {shape = [512, 96]} : tensor<512x96xf32>
  %w = graph.weight @w : tensor<96x128xf32>
  %product = graph.matmul %rows, %w : tensor<512x128xf32>
  %y = graph.reshape %product {shape = [8, 64, 128]} : tensor<8x64x128xf32>
  func.return %y : tensor<8x64x128xf32>
}
