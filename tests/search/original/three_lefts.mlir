builtin.module {
  func.func @main(%x: tensor<70x120xf32> {isoform.name = "x"}, %y: tensor<70x120xf32> {isoform.name = "y"}, %z: tensor<70x120xf32> {isoform.name = "z"}) -> (tensor<70x90xf32> {isoform.name = "s"}) {
    %w = graph.weight @w : tensor<120x90xf32>
    %0 = graph.matmul %x, %w : tensor<70x90xf32>
    %1 = graph.matmul %y, %w : tensor<70x90xf32>
    %2 = graph.matmul %z, %w : tensor<70x90xf32>
    %3 = graph.add %0, %1 : tensor<70x90xf32>
    %4 = graph.sub %3, %2 : tensor<70x90xf32>
    func.return %4 : tensor<70x90xf32>
  }
}
