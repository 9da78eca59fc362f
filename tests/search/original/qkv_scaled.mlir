builtin.module {
  func.func @main(%x: tensor<3x29x80xf32> {isoform.name = "x"}) -> (tensor<3x29x128xf32> {isoform.name = "q"}, tensor<3x29x32xf32> {isoform.name = "k"}, tensor<3x29x48xf32> {isoform.name = "v"}) {
    %wq = graph.weight @wq : tensor<80x128xf32>
    %0 = graph.broadcast %wq {shape = [3, 80, 128], dims = [1, 2]} : tensor<3x80x128xf32>
    %1 = graph.matmul %x, %0 : tensor<3x29x128xf32>
    %bq = graph.weight @bq : tensor<128xf32>
    %2 = graph.broadcast %bq {shape = [3, 29, 128], dims = [2]} : tensor<3x29x128xf32>
    %3 = graph.add %1, %2 : tensor<3x29x128xf32>
    %4 = graph.constant dense<2.500000e-01> : tensor<f32>
    %5 = graph.broadcast %4 {shape = [3, 29, 128], dims = []} : tensor<3x29x128xf32>
    %6 = graph.mul %3, %5 : tensor<3x29x128xf32>
    %wk = graph.weight @wk : tensor<80x32xf32>
    %7 = graph.broadcast %wk {shape = [3, 80, 32], dims = [1, 2]} : tensor<3x80x32xf32>
    %8 = graph.matmul %x, %7 : tensor<3x29x32xf32>
    %bk = graph.weight @bk : tensor<32xf32>
    %9 = graph.broadcast %bk {shape = [3, 29, 32], dims = [2]} : tensor<3x29x32xf32>
    %10 = graph.add %8, %9 : tensor<3x29x32xf32>
    %wv = graph.weight @wv : tensor<80x48xf32>
    %11 = graph.broadcast %wv {shape = [3, 80, 48], dims = [1, 2]} : tensor<3x80x48xf32>
    %12 = graph.matmul %x, %11 : tensor<3x29x48xf32>
    %bv = graph.weight @bv : tensor<48xf32>
    %13 = graph.broadcast %bv {shape = [3, 29, 48], dims = [2]} : tensor<3x29x48xf32>
    %14 = graph.add %12, %13 : tensor<3x29x48xf32>
    func.return %6, %10, %14 : tensor<3x29x128xf32>, tensor<3x29x32xf32>, tensor<3x29x48xf32>
  }
}
