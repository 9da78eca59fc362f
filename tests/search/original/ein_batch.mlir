builtin.module {
  func.func @main(%a: tensor<4x32x48xf32> {isoform.name = "a"}, %c: tensor<4x48x40xf32> {isoform.name = "c"}) -> (tensor<4x32x40xf32> {isoform.name = "y"}) {
    %0 = graph.broadcast %a {shape = [4, 32, 48, 40], dims = [0, 1, 2]} : tensor<4x32x48x40xf32>
    %1 = graph.broadcast %c {shape = [4, 32, 48, 40], dims = [0, 2, 3]} : tensor<4x32x48x40xf32>
    %2 = graph.mul %0, %1 : tensor<4x32x48x40xf32>
    %3 = graph.reduce_sum %2 {axes = [2], keep_dims = false} : tensor<4x32x40xf32>
    func.return %3 : tensor<4x32x40xf32>
  }
}
