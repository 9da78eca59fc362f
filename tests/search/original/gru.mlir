builtin.module {
  func.func @main(%x: tensor<4x192xf32> {isoform.name = "x"}, %h: tensor<4x192xf32> {isoform.name = "h"}) -> (tensor<4x192xf32> {isoform.name = "y"}) {
    %wr = graph.weight @wr : tensor<192x192xf32>
    %0 = graph.matmul %x, %wr : tensor<4x192xf32>
    %br = graph.weight @br : tensor<192xf32>
    %1 = graph.broadcast %br {shape = [4, 192], dims = [1]} : tensor<4x192xf32>
    %2 = graph.add %0, %1 : tensor<4x192xf32>
    %ur = graph.weight @ur : tensor<192x192xf32>
    %3 = graph.matmul %h, %ur : tensor<4x192xf32>
    %4 = graph.add %2, %3 : tensor<4x192xf32>
    %5 = graph.sigmoid %4 : tensor<4x192xf32>
    %wz = graph.weight @wz : tensor<192x192xf32>
    %6 = graph.matmul %x, %wz : tensor<4x192xf32>
    %bz = graph.weight @bz : tensor<192xf32>
    %7 = graph.broadcast %bz {shape = [4, 192], dims = [1]} : tensor<4x192xf32>
    %8 = graph.add %6, %7 : tensor<4x192xf32>
    %uz = graph.weight @uz : tensor<192x192xf32>
    %9 = graph.matmul %h, %uz : tensor<4x192xf32>
    %10 = graph.add %8, %9 : tensor<4x192xf32>
    %11 = graph.sigmoid %10 : tensor<4x192xf32>
    %wn = graph.weight @wn : tensor<192x192xf32>
    %12 = graph.matmul %x, %wn : tensor<4x192xf32>
    %bn = graph.weight @bn : tensor<192xf32>
    %13 = graph.broadcast %bn {shape = [4, 192], dims = [1]} : tensor<4x192xf32>
    %14 = graph.add %12, %13 : tensor<4x192xf32>
    %wh = graph.weight @wh : tensor<192x192xf32>
    %15 = graph.matmul %h, %wh : tensor<4x192xf32>
    %bh = graph.weight @bh : tensor<192xf32>
    %16 = graph.broadcast %bh {shape = [4, 192], dims = [1]} : tensor<4x192xf32>
    %17 = graph.add %15, %16 : tensor<4x192xf32>
    %18 = graph.mul %5, %17 : tensor<4x192xf32>
    %19 = graph.add %14, %18 : tensor<4x192xf32>
    %20 = graph.tanh %19 : tensor<4x192xf32>
    %21 = graph.constant dense<1.000000e+00> : tensor<f32>
    %22 = graph.broadcast %21 {shape = [4, 192], dims = []} : tensor<4x192xf32>
    %23 = graph.sub %22, %11 : tensor<4x192xf32>
    %24 = graph.mul %23, %20 : tensor<4x192xf32>
    %25 = graph.mul %11, %h : tensor<4x192xf32>
    %26 = graph.add %24, %25 : tensor<4x192xf32>
    func.return %26 : tensor<4x192xf32>
  }
}
