// One product of all widths with the batch as rows; the scale goes into weight and bias.
builtin.module {
  func.func @main(%x: tensor<3x29x80xf32> {isoform.name = "x"}) -> (tensor<3x29x128xf32> {isoform.name = "q"}, tensor<3x29x32xf32> {isoform.name = "k"}, tensor<3x29x48xf32> {isoform.name = "v"}) {
    %0 = graph.reshape %x {shape = [87, 80]} : tensor<87x80xf32>
    %wq = graph.weight @wq : tensor<80x128xf32>
    %1 = graph.constant dense<2.500000e-01> : tensor<f32>
    %2 = graph.broadcast %1 {shape = [80, 128], dims = []} : tensor<80x128xf32>
    %3 = graph.mul %wq, %2 : tensor<80x128xf32>
    %bq = graph.weight @bq : tensor<128xf32>
    %4 = graph.constant dense<2.500000e-01> : tensor<f32>
    %5 = graph.broadcast %4 {shape = [128], dims = []} : tensor<128xf32>
    %6 = graph.mul %bq, %5 : tensor<128xf32>
    %wk = graph.weight @wk : tensor<80x32xf32>
    %wv = graph.weight @wv : tensor<80x48xf32>
    %7 = graph.concat %3, %wk, %wv {axis = 1} : tensor<80x208xf32>
    %8 = graph.matmul %0, %7 : tensor<87x208xf32>
    %bk = graph.weight @bk : tensor<32xf32>
    %bv = graph.weight @bv : tensor<48xf32>
    %9 = graph.concat %6, %bk, %bv {axis = 0} : tensor<208xf32>
    %10 = graph.broadcast %9 {shape = [87, 208], dims = [1]} : tensor<87x208xf32>
    %11 = graph.add %8, %10 : tensor<87x208xf32>
    %12, %13, %14 = graph.split %11 {axis = 1, sizes = [128, 32, 48]} : tensor<87x128xf32>, tensor<87x32xf32>, tensor<87x48xf32>
    %15 = graph.reshape %12 {shape = [3, 29, 128]} : tensor<3x29x128xf32>
    %16 = graph.reshape %13 {shape = [3, 29, 32]} : tensor<3x29x32xf32>
    %17 = graph.reshape %14 {shape = [3, 29, 48]} : tensor<3x29x48xf32>
    func.return %15, %16, %17 : tensor<3x29x128xf32>, tensor<3x29x32xf32>, tensor<3x29x48xf32>
  }
}
