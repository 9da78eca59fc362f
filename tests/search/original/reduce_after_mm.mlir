builtin.module {
  func.func @main(%a: tensor<512x512xf32> {isoform.name = "a"}, %c: tensor<512x512xf32> {isoform.name = "c"}) -> (tensor<1x512xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %c : tensor<512x512xf32>
    %1 = graph.reduce_sum %0 {axes = [0]} : tensor<1x512xf32>
    func.return %1 : tensor<1x512xf32>
  }
}
