// One weight: its left sides are added before.
builtin.module {
  func.func @main(%x: tensor<70x120xf32> {isoform.name = "x"}, %y: tensor<70x120xf32> {isoform.name = "y"}, %z: tensor<70x120xf32> {isoform.name = "z"}) -> (tensor<70x90xf32> {isoform.name = "s"}) {
    %w = graph.weight @w : tensor<120x90xf32>
    %0 = graph.add %x, %y : tensor<70x120xf32>
    %1 = graph.sub %0, %z : tensor<70x120xf32>
    %2 = graph.matmul %1, %w : tensor<70x90xf32>
    func.return %2 : tensor<70x90xf32>
  }
}
