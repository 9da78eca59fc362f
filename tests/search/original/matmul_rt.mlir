builtin.module {
  func.func @main(%a: tensor<8x64x96xf32> {isoform.name = "a"}) -> (tensor<8x64x128xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x128xf32>
    %0 = graph.broadcast %w {shape = [8, 96, 128], dims = [1, 2]} : tensor<8x96x128xf32>
    %1 = graph.matmul %a, %0 : tensor<8x64x128xf32>
    func.return %1 : tensor<8x64x128xf32>
  }
}
