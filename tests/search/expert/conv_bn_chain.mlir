// Norms and the pointwise convolution go into one convolution.
builtin.module {
  func.func @main(%x: tensor<1x32x22x22xf32> {isoform.name = "x"}) -> (tensor<1x48x22x22xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x32x3x3xf32>
    %0 = graph.reshape %w {shape = [64, 288]} : tensor<64x288xf32>
    %g1 = graph.weight @g1 : tensor<64xf32>
    %1 = graph.broadcast %g1 {shape = [64, 288], dims = [0]} : tensor<64x288xf32>
    %2 = graph.mul %0, %1 : tensor<64x288xf32>
    %v = graph.weight @v : tensor<48x64x1x1xf32>
    %3 = graph.reshape %v {shape = [48, 64]} : tensor<48x64xf32>
    %g2 = graph.weight @g2 : tensor<48xf32>
    %4 = graph.broadcast %g2 {shape = [48, 64], dims = [0]} : tensor<48x64xf32>
    %5 = graph.mul %3, %4 : tensor<48x64xf32>
    %o1 = graph.weight @o1 : tensor<64xf32>
    %6 = graph.reshape %o1 {shape = [64, 1]} : tensor<64x1xf32>
    %7 = graph.matmul %5, %6 : tensor<48x1xf32>
    %8 = graph.reshape %7 {shape = [48]} : tensor<48xf32>
    %c = graph.weight @c : tensor<48xf32>
    %9 = graph.mul %c, %g2 : tensor<48xf32>
    %o2 = graph.weight @o2 : tensor<48xf32>
    %10 = graph.add %9, %o2 : tensor<48xf32>
    %11 = graph.add %8, %10 : tensor<48xf32>
    %12 = graph.matmul %5, %2 : tensor<48x288xf32>
    %13 = graph.reshape %12 {shape = [48, 32, 3, 3]} : tensor<48x32x3x3xf32>
    %14 = graph.conv %x, %13, %11 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x48x22x22xf32>
    %15 = graph.relu %14 : tensor<1x48x22x22xf32>
    func.return %15 : tensor<1x48x22x22xf32>
  }
}
