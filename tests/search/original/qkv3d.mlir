builtin.module {
  func.func @main(%x: tensor<2x37x96xf32> {isoform.name = "x"}) -> (tensor<2x37x96xf32> {isoform.name = "q"}, tensor<2x37x96xf32> {isoform.name = "k"}, tensor<2x37x96xf32> {isoform.name = "v"}) {
    %0 = graph.reshape %x {shape = [74, 96]} : tensor<74x96xf32>
    %wq = graph.weight @wq : tensor<96x96xf32>
    %1 = graph.matmul %0, %wq : tensor<74x96xf32>
    %2 = graph.reshape %1 {shape = [2, 37, 96]} : tensor<2x37x96xf32>
    %wk = graph.weight @wk : tensor<96x96xf32>
    %3 = graph.matmul %0, %wk : tensor<74x96xf32>
    %4 = graph.reshape %3 {shape = [2, 37, 96]} : tensor<2x37x96xf32>
    %wv = graph.weight @wv : tensor<96x96xf32>
    %5 = graph.matmul %0, %wv : tensor<74x96xf32>
    %6 = graph.reshape %5 {shape = [2, 37, 96]} : tensor<2x37x96xf32>
    func.return %2, %4, %6 : tensor<2x37x96xf32>, tensor<2x37x96xf32>, tensor<2x37x96xf32>
  }
}
