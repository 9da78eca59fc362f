builtin.module {
  func.func @main(%x: tensor<3x50x64xf32> {isoform.name = "x"}) -> (tensor<3x96xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x96xf32>
    %0 = graph.broadcast %w {shape = [3, 64, 96], dims = [1, 2]} : tensor<3x64x96xf32>
    %1 = graph.matmul %x, %0 : tensor<3x50x96xf32>
    %c = graph.weight @c : tensor<96xf32>
    %2 = graph.broadcast %c {shape = [3, 50, 96], dims = [2]} : tensor<3x50x96xf32>
    %3 = graph.add %1, %2 : tensor<3x50x96xf32>
    %4 = graph.reduce_mean %3 {axes = [1], keep_dims = false} : tensor<3x96xf32>
    func.return %4 : tensor<3x96xf32>
  }
}
