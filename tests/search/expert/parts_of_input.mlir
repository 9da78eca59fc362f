// Parts of one input beside each other are that input.
builtin.module {
  func.func @main(%x: tensor<80x300xf32> {isoform.name = "x"}) -> (tensor<80x64xf32> {isoform.name = "y"}) {
    %w0 = graph.weight @w0 : tensor<100x64xf32>
    %w1 = graph.weight @w1 : tensor<100x64xf32>
    %w2 = graph.weight @w2 : tensor<100x64xf32>
    %0 = graph.concat %w0, %w1, %w2 {axis = 0} : tensor<300x64xf32>
    %1 = graph.matmul %x, %0 : tensor<80x64xf32>
    func.return %1 : tensor<80x64xf32>
  }
}
