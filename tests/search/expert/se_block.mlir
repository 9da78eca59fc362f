// The gates scale the weights, not the image.
builtin.module {
  func.func @main(%x: tensor<1x64x16x16xf32> {isoform.name = "x"}) -> (tensor<1x96x16x16xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [2, 3]} : tensor<1x64x1x1xf32>
    %1 = graph.reshape %0 {shape = [1, 64]} : tensor<1x64xf32>
    %w = graph.weight @w : tensor<16x64x1x1xf32>
    %2 = graph.reshape %w {shape = [16, 64]} : tensor<16x64xf32>
    %3 = graph.matmul %1, %2 {transpose_b = true} : tensor<1x16xf32>
    %c = graph.weight @c : tensor<16xf32>
    %4 = graph.broadcast %c {shape = [1, 16], dims = [1]} : tensor<1x16xf32>
    %5 = graph.add %3, %4 : tensor<1x16xf32>
    %6 = graph.relu %5 : tensor<1x16xf32>
    %v = graph.weight @v : tensor<64x16x1x1xf32>
    %7 = graph.reshape %v {shape = [64, 16]} : tensor<64x16xf32>
    %8 = graph.matmul %6, %7 {transpose_b = true} : tensor<1x64xf32>
    %d = graph.weight @d : tensor<64xf32>
    %9 = graph.broadcast %d {shape = [1, 64], dims = [1]} : tensor<1x64xf32>
    %10 = graph.add %8, %9 : tensor<1x64xf32>
    %11 = graph.sigmoid %10 : tensor<1x64xf32>
    %u = graph.weight @u : tensor<96x64x1x1xf32>
    %12 = graph.reshape %11 {shape = [64]} : tensor<64xf32>
    %13 = graph.broadcast %12 {shape = [96, 64, 1, 1], dims = [1]} : tensor<96x64x1x1xf32>
    %14 = graph.mul %u, %13 : tensor<96x64x1x1xf32>
    %15 = graph.conv %x, %14 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x96x16x16xf32>
    func.return %15 : tensor<1x96x16x16xf32>
  }
}
