// Copies of columns meet the sum of their rows.
builtin.module {
  func.func @main(%x: tensor<50x32xf32> {isoform.name = "x"}) -> (tensor<50x40xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<128x40xf32>
    %0 = graph.reshape %w {shape = [4, 32, 40]} : tensor<4x32x40xf32>
    %1 = graph.reduce_sum %0 {axes = [0], keep_dims = false} : tensor<32x40xf32>
    %2 = graph.matmul %x, %1 : tensor<50x40xf32>
    func.return %2 : tensor<50x40xf32>
  }
}
