builtin.module {
  func.func @main(%x: tensor<1x32x22x22xf32> {isoform.name = "x"}) -> (tensor<1x48x22x22xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x32x3x3xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x22x22xf32>
    %g1 = graph.weight @g1 : tensor<64xf32>
    %1 = graph.broadcast %g1 {shape = [1, 64, 22, 22], dims = [1]} : tensor<1x64x22x22xf32>
    %2 = graph.mul %0, %1 : tensor<1x64x22x22xf32>
    %o1 = graph.weight @o1 : tensor<64xf32>
    %3 = graph.broadcast %o1 {shape = [1, 64, 22, 22], dims = [1]} : tensor<1x64x22x22xf32>
    %4 = graph.add %2, %3 : tensor<1x64x22x22xf32>
    %v = graph.weight @v : tensor<48x64x1x1xf32>
    %c = graph.weight @c : tensor<48xf32>
    %5 = graph.conv %4, %v, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x48x22x22xf32>
    %g2 = graph.weight @g2 : tensor<48xf32>
    %6 = graph.broadcast %g2 {shape = [1, 48, 22, 22], dims = [1]} : tensor<1x48x22x22xf32>
    %7 = graph.mul %5, %6 : tensor<1x48x22x22xf32>
    %o2 = graph.weight @o2 : tensor<48xf32>
    %8 = graph.broadcast %o2 {shape = [1, 48, 22, 22], dims = [1]} : tensor<1x48x22x22xf32>
    %9 = graph.add %7, %8 : tensor<1x48x22x22xf32>
    %10 = graph.relu %9 : tensor<1x48x22x22xf32>
    func.return %10 : tensor<1x48x22x22xf32>
  }
}
