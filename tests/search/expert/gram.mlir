// Both weights are one small matrix between the inputs.
builtin.module {
  func.func @main(%x: tensor<60x40xf32> {isoform.name = "x"}) -> (tensor<60x60xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<40x300xf32>
    %v = graph.weight @v : tensor<40x300xf32>
    %0 = graph.matmul %w, %v {transpose_b = true} : tensor<40x40xf32>
    %1 = graph.matmul %x, %0 : tensor<60x40xf32>
    %2 = graph.matmul %1, %x {transpose_b = true} : tensor<60x60xf32>
    func.return %2 : tensor<60x60xf32>
  }
}
