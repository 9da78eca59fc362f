builtin.module {
  func.func @main(%x: tensor<4x64x28x28xf32> {isoform.name = "x"}) -> (tensor<4x32xf32> {isoform.name = "y"}) {
    %s = graph.weight @s : tensor<64xf32>
    %0 = graph.broadcast %s {shape = [4, 64, 28, 28], dims = [1]} : tensor<4x64x28x28xf32>
    %1 = graph.mul %x, %0 : tensor<4x64x28x28xf32>
    %2 = graph.reduce_mean %1 {axes = [2, 3], keep_dims = false} : tensor<4x64xf32>
    %w = graph.weight @w : tensor<64x32xf32>
    %3 = graph.matmul %2, %w : tensor<4x32xf32>
    func.return %3 : tensor<4x32xf32>
  }
}
