builtin.module {
  func.func @main(%x: tensor<128x192xf32> {isoform.name = "x"}) -> (tensor<128x64xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [1]} : tensor<128x1xf32>
    %1 = graph.broadcast %0 {shape = [128, 192], dims = [0, 1]} : tensor<128x192xf32>
    %2 = graph.sub %x, %1 : tensor<128x192xf32>
    %w = graph.weight @w : tensor<192x64xf32>
    %3 = graph.matmul %2, %w : tensor<128x64xf32>
    func.return %3 : tensor<128x64xf32>
  }
}
