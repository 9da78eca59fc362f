// The gain of a norm goes into the weights, the norm of a row behind one product.
builtin.module {
  func.func @main(%x: tensor<40x96xf32> {isoform.name = "x"}) -> (tensor<40x96xf32> {isoform.name = "q"}, tensor<40x32xf32> {isoform.name = "k"}, tensor<40x32xf32> {isoform.name = "v"}) {
    %0 = graph.mul %x, %x : tensor<40x96xf32>
    %1 = graph.reduce_mean %0 {axes = [1]} : tensor<40x1xf32>
    %2 = graph.constant dense<1.000000e-05> : tensor<f32>
    %3 = graph.broadcast %2 {shape = [40, 1], dims = []} : tensor<40x1xf32>
    %4 = graph.add %1, %3 : tensor<40x1xf32>
    %5 = graph.sqrt %4 : tensor<40x1xf32>
    %g = graph.weight @g : tensor<96xf32>
    %wq = graph.weight @wq : tensor<96x96xf32>
    %wk = graph.weight @wk : tensor<96x32xf32>
    %wv = graph.weight @wv : tensor<96x32xf32>
    %6 = graph.concat %wq, %wk, %wv {axis = 1} : tensor<96x160xf32>
    %7 = graph.broadcast %g {shape = [96, 160], dims = [0]} : tensor<96x160xf32>
    %8 = graph.mul %6, %7 : tensor<96x160xf32>
    %9 = graph.matmul %x, %8 : tensor<40x160xf32>
    %10 = graph.broadcast %5 {shape = [40, 160], dims = [0, 1]} : tensor<40x160xf32>
    %11 = graph.div %9, %10 : tensor<40x160xf32>
    %12, %13, %14 = graph.split %11 {axis = 1, sizes = [96, 32, 32]} : tensor<40x96xf32>, tensor<40x32xf32>, tensor<40x32xf32>
    func.return %12, %13, %14 : tensor<40x96xf32>, tensor<40x32xf32>, tensor<40x32xf32>
  }
}
