// The products of the input are one, those of the state another; their parts meet in one kernel.
builtin.module {
  func.func @main(%x: tensor<4x192xf32> {isoform.name = "x"}, %h: tensor<4x192xf32> {isoform.name = "h"}) -> (tensor<4x192xf32> {isoform.name = "y"}) {
    %wr = graph.weight @wr : tensor<192x192xf32>
    %wz = graph.weight @wz : tensor<192x192xf32>
    %wn = graph.weight @wn : tensor<192x192xf32>
    %0 = graph.concat %wr, %wz, %wn {axis = 1} : tensor<192x576xf32>
    %1 = graph.matmul %x, %0 : tensor<4x576xf32>
    %br = graph.weight @br : tensor<192xf32>
    %bz = graph.weight @bz : tensor<192xf32>
    %bn = graph.weight @bn : tensor<192xf32>
    %2 = graph.concat %br, %bz, %bn {axis = 0} : tensor<576xf32>
    %3 = graph.broadcast %2 {shape = [4, 576], dims = [1]} : tensor<4x576xf32>
    %4 = graph.add %1, %3 : tensor<4x576xf32>
    %ur = graph.weight @ur : tensor<192x192xf32>
    %uz = graph.weight @uz : tensor<192x192xf32>
    %wh = graph.weight @wh : tensor<192x192xf32>
    %5 = graph.concat %ur, %uz, %wh {axis = 1} : tensor<192x576xf32>
    %6 = graph.matmul %h, %5 : tensor<4x576xf32>
    %7, %8, %9 = graph.split %4 {axis = 1, sizes = [192, 192, 192]} : tensor<4x192xf32>, tensor<4x192xf32>, tensor<4x192xf32>
    %10, %11, %12 = graph.split %6 {axis = 1, sizes = [192, 192, 192]} : tensor<4x192xf32>, tensor<4x192xf32>, tensor<4x192xf32>
    %13 = graph.add %7, %10 : tensor<4x192xf32>
    %14 = graph.sigmoid %13 : tensor<4x192xf32>
    %15 = graph.add %8, %11 : tensor<4x192xf32>
    %16 = graph.sigmoid %15 : tensor<4x192xf32>
    %bh = graph.weight @bh : tensor<192xf32>
    %17 = graph.broadcast %bh {shape = [4, 192], dims = [1]} : tensor<4x192xf32>
    %18 = graph.add %12, %17 : tensor<4x192xf32>
    %19 = graph.mul %14, %18 : tensor<4x192xf32>
    %20 = graph.add %9, %19 : tensor<4x192xf32>
    %21 = graph.tanh %20 : tensor<4x192xf32>
    %22 = graph.constant dense<1.000000e+00> : tensor<f32>
    %23 = graph.broadcast %22 {shape = [4, 192], dims = []} : tensor<4x192xf32>
    %24 = graph.sub %23, %16 : tensor<4x192xf32>
    %25 = graph.mul %24, %21 : tensor<4x192xf32>
    %26 = graph.mul %16, %h : tensor<4x192xf32>
    %27 = graph.add %25, %26 : tensor<4x192xf32>
    func.return %27 : tensor<4x192xf32>
  }
}
