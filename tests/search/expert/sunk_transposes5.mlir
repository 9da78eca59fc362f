// The transposes meet and cancel.
builtin.module {
  func.func @main(%x: tensor<2x6x10x8x12xf32> {isoform.name = "x"}, %z: tensor<2x6x10x8x12xf32> {isoform.name = "z"}) -> (tensor<2x6x10x8x12xf32> {isoform.name = "y"}) {
    %0 = graph.add %x, %z : tensor<2x6x10x8x12xf32>
    %1 = graph.tanh %0 : tensor<2x6x10x8x12xf32>
    %2 = graph.constant dense<5.000000e-01> : tensor<f32>
    %3 = graph.broadcast %2 {shape = [2, 6, 10, 8, 12], dims = []} : tensor<2x6x10x8x12xf32>
    %4 = graph.mul %1, %3 : tensor<2x6x10x8x12xf32>
    func.return %4 : tensor<2x6x10x8x12xf32>
  }
}
