// One product with the weights side by side, and one bias of all columns.
func.func @main(%x: tensor<74x96xf32> {isoform.name = "x"}) -> (tensor<74x96xf32> {isoform.name = "q"}, tensor<74x96xf32> {isoform.name = "k"}, tensor<74x96xf32> {isoform.name = "v"}) {
  %wq = graph.weight @wq : tensor<96x96xf32>
  %wk = graph.weight @wk : tensor<96x96xf32>
  %wv = graph.weight @wv : tensor<96x96xf32>
  %w = graph.concat %wq, %wk, %wv {axis = 1} : tensor<96x288xf32>
  %bq = graph.weight @bq : tensor<96xf32>
  %bk = graph.weight @bk : tensor<96xf32>
  %bv = graph.weight @bv : tensor<96xf32>
  %bias = graph.concat %bq, %bk, %bv {axis = 0} : tensor<288xf32>
  %product = graph.matmul %x, %w : tensor<74x288xf32>
  %rows = graph.broadcast %bias {shape = [74, 288], dims = [1]} : tensor<74x288xf32>
  %y = graph.add %product, %rows : tensor<74x288xf32>
  %q, %k, %v = graph.split %y {axis = 1, sizes = [96, 96, 96]} : tensor<74x96xf32>, tensor<74x96xf32>, tensor<74x96xf32>
  func.return %q, %k, %v : tensor<74x96xf32>, tensor<74x96xf32>, tensor<74x96xf32>
}
