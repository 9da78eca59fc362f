builtin.module {
  func.func @main(%x: tensor<2x6x10x8x12xf32> {isoform.name = "x"}, %z: tensor<2x6x10x8x12xf32> {isoform.name = "z"}) -> (tensor<2x6x10x8x12xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %x {perm = [0, 2, 1, 4, 3]} : tensor<2x10x6x12x8xf32>
    %1 = graph.transpose %z {perm = [0, 2, 1, 4, 3]} : tensor<2x10x6x12x8xf32>
    %2 = graph.add %0, %1 : tensor<2x10x6x12x8xf32>
    %3 = graph.tanh %2 : tensor<2x10x6x12x8xf32>
    %4 = graph.constant dense<5.000000e-01> : tensor<f32>
    %5 = graph.broadcast %4 {shape = [2, 10, 6, 12, 8], dims = []} : tensor<2x10x6x12x8xf32>
    %6 = graph.mul %3, %5 : tensor<2x10x6x12x8xf32>
    %7 = graph.transpose %6 {perm = [0, 2, 1, 4, 3]} : tensor<2x6x10x8x12xf32>
    func.return %7 : tensor<2x6x10x8x12xf32>
  }
}
