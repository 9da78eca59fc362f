builtin.module {
  func.func @main(%x: tensor<74x96xf32> {isoform.name = "x"}) -> (tensor<74x96xf32> {isoform.name = "q"}, tensor<74x96xf32> {isoform.name = "k"}, tensor<74x96xf32> {isoform.name = "v"}) {
    %wq = graph.weight @wq : tensor<96x96xf32>
    %0 = graph.matmul %x, %wq : tensor<74x96xf32>
    %bq = graph.weight @bq : tensor<96xf32>
    %1 = graph.broadcast %bq {shape = [74, 96], dims = [1]} : tensor<74x96xf32>
    %2 = graph.add %0, %1 : tensor<74x96xf32>
    %wk = graph.weight @wk : tensor<96x96xf32>
    %3 = graph.matmul %x, %wk : tensor<74x96xf32>
    %bk = graph.weight @bk : tensor<96xf32>
    %4 = graph.broadcast %bk {shape = [74, 96], dims = [1]} : tensor<74x96xf32>
    %5 = graph.add %3, %4 : tensor<74x96xf32>
    %wv = graph.weight @wv : tensor<96x96xf32>
    %6 = graph.matmul %x, %wv : tensor<74x96xf32>
    %bv = graph.weight @bv : tensor<96xf32>
    %7 = graph.broadcast %bv {shape = [74, 96], dims = [1]} : tensor<74x96xf32>
    %8 = graph.add %6, %7 : tensor<74x96xf32>
    func.return %2, %5, %8 : tensor<74x96xf32>, tensor<74x96xf32>, tensor<74x96xf32>
  }
}
