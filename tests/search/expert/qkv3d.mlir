// One product with the weights side by side; its columns are the three results.
func.func @main(%x: tensor<2x37x96xf32> {isoform.name = "x"}) -> (tensor<2x37x96xf32> {isoform.name = "q"}, tensor<2x37x96xf32> {isoform.name = "k"}, tensor<2x37x96xf32> {isoform.name = "v"}) {
  %rows = graph.reshape %x {shape = [74, 96]} : tensor<74x96xf32>
  %wq = graph.weight @wq : tensor<96x96xf32>
  %wk = graph.weight @wk : tensor<96x96xf32>
  %wv = graph.weight @wv : tensor<96x96xf32>
  %w = graph.concat %wq, %wk, %wv {axis = 1} : tensor<96x288xf32>
  %y = graph.matmul %rows, %w : tensor<74x288xf32>
  %q.rows, %k.rows, %v.rows = graph.split %y {axis = 1, sizes = [96, 96, 96]} : tensor<74x96xf32>, tensor<74x96xf32>, tensor<74x96xf32>
  %q = graph.reshape %q.rows {shape = [2, 37, 96]} : tensor<2x37x96xf32>
  %k = graph.reshape %k.rows {shape = [2, 37, 96]} : tensor<2x37x96xf32>
  %v = graph.reshape %v.rows {shape = [2, 37, 96]} : tensor<2x37x96xf32>
  func.return %q, %k, %v : tensor<2x37x96xf32>, tensor<2x37x96xf32>, tensor<2x37x96xf32>
}
