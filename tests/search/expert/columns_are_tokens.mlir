// All tokens are rows of one product with the transposed weight.
builtin.module {
  func.func @main(%x: tensor<3x50x40xf32> {isoform.name = "x"}) -> (tensor<3x50x64xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x40xf32>
    %c = graph.weight @c : tensor<64xf32>
    %0 = graph.reshape %x {shape = [150, 40]} : tensor<150x40xf32>
    %1 = graph.matmul %0, %w {transpose_b = true} : tensor<150x64xf32>
    %2 = graph.broadcast %c {shape = [150, 64], dims = [1]} : tensor<150x64xf32>
    %3 = graph.add %1, %2 : tensor<150x64xf32>
    %4 = graph.elu %3 : tensor<150x64xf32>
    %5 = graph.reshape %4 {shape = [3, 50, 64]} : tensor<3x50x64xf32>
    func.return %5 : tensor<3x50x64xf32>
  }
}
