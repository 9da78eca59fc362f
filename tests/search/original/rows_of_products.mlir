builtin.module {
  func.func @main(%p: tensor<30x80xf32> {isoform.name = "p"}, %q: tensor<50x80xf32> {isoform.name = "q"}, %r: tensor<20x80xf32> {isoform.name = "r"}) -> (tensor<100x64xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<80x64xf32>
    %0 = graph.matmul %p, %w : tensor<30x64xf32>
    %1 = graph.matmul %q, %w : tensor<50x64xf32>
    %2 = graph.matmul %r, %w : tensor<20x64xf32>
    %3 = graph.concat %0, %1, %2 {axis = 0} : tensor<100x64xf32>
    func.return %3 : tensor<100x64xf32>
  }
}
