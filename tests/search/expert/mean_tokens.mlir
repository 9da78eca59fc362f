// The mean of the tokens first: one row of each batch.
builtin.module {
  func.func @main(%x: tensor<3x50x64xf32> {isoform.name = "x"}) -> (tensor<3x96xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [1], keep_dims = false} : tensor<3x64xf32>
    %w = graph.weight @w : tensor<64x96xf32>
    %1 = graph.matmul %0, %w : tensor<3x96xf32>
    %c = graph.weight @c : tensor<96xf32>
    %2 = graph.broadcast %c {shape = [3, 96], dims = [1]} : tensor<3x96xf32>
    %3 = graph.add %1, %2 : tensor<3x96xf32>
    func.return %3 : tensor<3x96xf32>
  }
}
