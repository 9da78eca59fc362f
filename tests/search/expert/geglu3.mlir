// The gate and the values are one product of all rows.
builtin.module {
  func.func @main(%x: tensor<3x20x64xf32> {isoform.name = "x"}) -> (tensor<3x20x64xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %x {shape = [60, 64]} : tensor<60x64xf32>
    %wu = graph.weight @wu : tensor<64x160xf32>
    %wv = graph.weight @wv : tensor<64x160xf32>
    %1 = graph.concat %wu, %wv {axis = 1} : tensor<64x320xf32>
    %bu = graph.weight @bu : tensor<160xf32>
    %bv = graph.weight @bv : tensor<160xf32>
    %2 = graph.concat %bu, %bv {axis = 0} : tensor<320xf32>
    %3 = graph.matmul %0, %1 : tensor<60x320xf32>
    %4 = graph.broadcast %2 {shape = [60, 320], dims = [1]} : tensor<60x320xf32>
    %5 = graph.add %3, %4 : tensor<60x320xf32>
    %6, %7 = graph.split %5 {axis = 1, sizes = [160, 160]} : tensor<60x160xf32>, tensor<60x160xf32>
    %8 = graph.constant dense<0.707106769> : tensor<f32>
    %9 = graph.broadcast %8 {shape = [60, 160], dims = []} : tensor<60x160xf32>
    %10 = graph.mul %6, %9 : tensor<60x160xf32>
    %11 = graph.erf %10 : tensor<60x160xf32>
    %12 = graph.constant dense<5.000000e-01> : tensor<f32>
    %13 = graph.broadcast %12 {shape = [60, 160], dims = []} : tensor<60x160xf32>
    %14 = graph.mul %6, %13 : tensor<60x160xf32>
    %15 = graph.constant dense<1.000000e+00> : tensor<f32>
    %16 = graph.broadcast %15 {shape = [60, 160], dims = []} : tensor<60x160xf32>
    %17 = graph.add %11, %16 : tensor<60x160xf32>
    %18 = graph.mul %14, %17 : tensor<60x160xf32>
    %19 = graph.mul %18, %7 : tensor<60x160xf32>
    %wo = graph.weight @wo : tensor<160x64xf32>
    %20 = graph.matmul %19, %wo : tensor<60x64xf32>
    %21 = graph.add %20, %0 : tensor<60x64xf32>
    %22 = graph.reshape %21 {shape = [3, 20, 64]} : tensor<3x20x64xf32>
    func.return %22 : tensor<3x20x64xf32>
  }
}
