builtin.module {
  func.func @main(%a: tensor<6x50x40xf32> {isoform.name = "a"}, %c: tensor<6x50x30xf32> {isoform.name = "c"}) -> (tensor<40x6x30xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %a {perm = [2, 0, 1]} : tensor<40x6x50xf32>
    %1 = graph.broadcast %0 {shape = [40, 6, 50, 30], dims = [0, 1, 2]} : tensor<40x6x50x30xf32>
    %2 = graph.broadcast %c {shape = [40, 6, 50, 30], dims = [1, 2, 3]} : tensor<40x6x50x30xf32>
    %3 = graph.mul %1, %2 : tensor<40x6x50x30xf32>
    %4 = graph.reduce_sum %3 {axes = [2], keep_dims = false} : tensor<40x6x30xf32>
    func.return %4 : tensor<40x6x30xf32>
  }
}
