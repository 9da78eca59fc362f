builtin.module {
  func.func @main(%x: tensor<70x128xf32> {isoform.name = "x"}) -> (tensor<70x1xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<128x200xf32>
    %0 = graph.matmul %x, %w : tensor<70x200xf32>
    %c = graph.weight @c : tensor<200xf32>
    %1 = graph.broadcast %c {shape = [70, 200], dims = [1]} : tensor<70x200xf32>
    %2 = graph.add %0, %1 : tensor<70x200xf32>
    %3 = graph.reduce_sum %2 {axes = [1]} : tensor<70x1xf32>
    func.return %3 : tensor<70x1xf32>
  }
}
