builtin.module {
  func.func @main(%x: tensor<70x40xf32> {isoform.name = "x"}, %z: tensor<70x90xf32> {isoform.name = "z"}) -> (tensor<70x50xf32> {isoform.name = "y"}) {
    %a = graph.weight @a : tensor<40x100xf32>
    %0 = graph.matmul %x, %a : tensor<70x100xf32>
    %1 = graph.concat %0, %z {axis = 1} : tensor<70x190xf32>
    %w = graph.weight @w : tensor<190x50xf32>
    %2 = graph.matmul %1, %w : tensor<70x50xf32>
    func.return %2 : tensor<70x50xf32>
  }
}
