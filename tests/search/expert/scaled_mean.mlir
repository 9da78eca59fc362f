// A mean is scaled, not each pixel.
builtin.module {
  func.func @main(%x: tensor<4x64x28x28xf32> {isoform.name = "x"}) -> (tensor<4x32xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [2, 3], keep_dims = false} : tensor<4x64xf32>
    %s = graph.weight @s : tensor<64xf32>
    %1 = graph.broadcast %s {shape = [4, 64], dims = [1]} : tensor<4x64xf32>
    %2 = graph.mul %0, %1 : tensor<4x64xf32>
    %w = graph.weight @w : tensor<64x32xf32>
    %3 = graph.matmul %2, %w : tensor<4x32xf32>
    func.return %3 : tensor<4x32xf32>
  }
}
