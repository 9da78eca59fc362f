builtin.module {
  func.func @main(%x: tensor<60x40xf32> {isoform.name = "x"}) -> (tensor<60x60xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<40x300xf32>
    %0 = graph.matmul %x, %w : tensor<60x300xf32>
    %v = graph.weight @v : tensor<40x300xf32>
    %1 = graph.matmul %x, %v : tensor<60x300xf32>
    %2 = graph.matmul %0, %1 {transpose_b = true} : tensor<60x60xf32>
    func.return %2 : tensor<60x60xf32>
  }
}
