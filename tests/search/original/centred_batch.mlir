builtin.module {
  func.func @main(%x: tensor<4x60x96xf32> {isoform.name = "x"}) -> (tensor<4x60x64xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [2]} : tensor<4x60x1xf32>
    %1 = graph.broadcast %0 {shape = [4, 60, 96], dims = [0, 1, 2]} : tensor<4x60x96xf32>
    %2 = graph.sub %x, %1 : tensor<4x60x96xf32>
    %w = graph.weight @w : tensor<96x64xf32>
    %3 = graph.broadcast %w {shape = [4, 96, 64], dims = [1, 2]} : tensor<4x96x64xf32>
    %4 = graph.matmul %2, %3 : tensor<4x60x64xf32>
    func.return %4 : tensor<4x60x64xf32>
  }
}
