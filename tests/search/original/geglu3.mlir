builtin.module {
  func.func @main(%x: tensor<3x20x64xf32> {isoform.name = "x"}) -> (tensor<3x20x64xf32> {isoform.name = "y"}) {
    %wu = graph.weight @wu : tensor<64x160xf32>
    %0 = graph.broadcast %wu {shape = [3, 64, 160], dims = [1, 2]} : tensor<3x64x160xf32>
    %1 = graph.matmul %x, %0 : tensor<3x20x160xf32>
    %bu = graph.weight @bu : tensor<160xf32>
    %2 = graph.broadcast %bu {shape = [3, 20, 160], dims = [2]} : tensor<3x20x160xf32>
    %3 = graph.add %1, %2 : tensor<3x20x160xf32>
    %wv = graph.weight @wv : tensor<64x160xf32>
    %4 = graph.broadcast %wv {shape = [3, 64, 160], dims = [1, 2]} : tensor<3x64x160xf32>
    %5 = graph.matmul %x, %4 : tensor<3x20x160xf32>
    %bv = graph.weight @bv : tensor<160xf32>
    %6 = graph.broadcast %bv {shape = [3, 20, 160], dims = [2]} : tensor<3x20x160xf32>
    %7 = graph.add %5, %6 : tensor<3x20x160xf32>
    %8 = graph.constant dense<0.707106769> : tensor<f32>
    %9 = graph.broadcast %8 {shape = [3, 20, 160], dims = []} : tensor<3x20x160xf32>
    %10 = graph.mul %3, %9 : tensor<3x20x160xf32>
    %11 = graph.erf %10 : tensor<3x20x160xf32>
    %12 = graph.constant dense<5.000000e-01> : tensor<f32>
    %13 = graph.broadcast %12 {shape = [3, 20, 160], dims = []} : tensor<3x20x160xf32>
    %14 = graph.mul %3, %13 : tensor<3x20x160xf32>
    %15 = graph.constant dense<1.000000e+00> : tensor<f32>
    %16 = graph.broadcast %15 {shape = [3, 20, 160], dims = []} : tensor<3x20x160xf32>
    %17 = graph.add %11, %16 : tensor<3x20x160xf32>
    %18 = graph.mul %14, %17 : tensor<3x20x160xf32>
    %19 = graph.mul %18, %7 : tensor<3x20x160xf32>
    %wo = graph.weight @wo : tensor<160x64xf32>
    %20 = graph.broadcast %wo {shape = [3, 160, 64], dims = [1, 2]} : tensor<3x160x64xf32>
    %21 = graph.matmul %19, %20 : tensor<3x20x64xf32>
    %22 = graph.add %21, %x : tensor<3x20x64xf32>
    func.return %22 : tensor<3x20x64xf32>
  }
}
