builtin.module {
  func.func @main(%x: tensor<40x96xf32> {isoform.name = "x"}) -> (tensor<40x96xf32> {isoform.name = "q"}, tensor<40x32xf32> {isoform.name = "k"}, tensor<40x32xf32> {isoform.name = "v"}) {
    %0 = graph.mul %x, %x : tensor<40x96xf32>
    %1 = graph.reduce_mean %0 {axes = [1]} : tensor<40x1xf32>
    %2 = graph.constant dense<1.000000e-05> : tensor<f32>
    %3 = graph.broadcast %2 {shape = [40, 1], dims = []} : tensor<40x1xf32>
    %4 = graph.add %1, %3 : tensor<40x1xf32>
    %5 = graph.sqrt %4 : tensor<40x1xf32>
    %6 = graph.broadcast %5 {shape = [40, 96], dims = [0, 1]} : tensor<40x96xf32>
    %7 = graph.div %x, %6 : tensor<40x96xf32>
    %g = graph.weight @g : tensor<96xf32>
    %8 = graph.broadcast %g {shape = [40, 96], dims = [1]} : tensor<40x96xf32>
    %9 = graph.mul %7, %8 : tensor<40x96xf32>
    %wq = graph.weight @wq : tensor<96x96xf32>
    %10 = graph.matmul %9, %wq : tensor<40x96xf32>
    %wk = graph.weight @wk : tensor<96x32xf32>
    %11 = graph.matmul %9, %wk : tensor<40x32xf32>
    %wv = graph.weight @wv : tensor<96x32xf32>
    %12 = graph.matmul %9, %wv : tensor<40x32xf32>
    func.return %10, %11, %12 : tensor<40x96xf32>, tensor<40x32xf32>, tensor<40x32xf32>
  }
}
