// One product of all taps; each kernel position is a place of the result.
builtin.module {
  func.func @main(%x: tensor<1x64x10x10xf32> {isoform.name = "x"}) -> (tensor<1x32x20x20xf32> {isoform.name = "p"}, tensor<1x48x20x20xf32> {isoform.name = "q"}) {
    %0 = graph.reshape %x {shape = [64, 100]} : tensor<64x100xf32>
    %wp = graph.weight @wp : tensor<64x32x2x2xf32>
    %1 = graph.reshape %wp {shape = [64, 128]} : tensor<64x128xf32>
    %wq = graph.weight @wq : tensor<64x48x2x2xf32>
    %2 = graph.reshape %wq {shape = [64, 192]} : tensor<64x192xf32>
    %3 = graph.concat %1, %2 {axis = 1} : tensor<64x320xf32>
    %4 = graph.transpose %3 {perm = [1, 0]} : tensor<320x64xf32>
    %5 = graph.matmul %4, %0 : tensor<320x100xf32>
    %6, %7 = graph.split %5 {axis = 0, sizes = [128, 192]} : tensor<128x100xf32>, tensor<192x100xf32>
    %8 = graph.reshape %6 {shape = [1, 32, 2, 2, 10, 10]} : tensor<1x32x2x2x10x10xf32>
    %9 = graph.transpose %8 {perm = [0, 1, 4, 2, 5, 3]} : tensor<1x32x10x2x10x2xf32>
    %10 = graph.reshape %9 {shape = [1, 32, 20, 20]} : tensor<1x32x20x20xf32>
    %11 = graph.reshape %7 {shape = [1, 48, 2, 2, 10, 10]} : tensor<1x48x2x2x10x10xf32>
    %12 = graph.transpose %11 {perm = [0, 1, 4, 2, 5, 3]} : tensor<1x48x10x2x10x2xf32>
    %13 = graph.reshape %12 {shape = [1, 48, 20, 20]} : tensor<1x48x20x20xf32>
    func.return %10, %13 : tensor<1x32x20x20xf32>, tensor<1x48x20x20xf32>
  }
}
