// The maxima have a product of their own, which is added everywhere.
builtin.module {
  func.func @main(%x: tensor<2x40x64xf32> {isoform.name = "x"}) -> (tensor<2x48x64xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<48x80x1xf32>
    %c = graph.weight @c : tensor<48xf32>
    %0 = graph.reduce_max %x {axes = [2]} : tensor<2x40x1xf32>
    %1 = graph.slice %w {starts = [0, 40, 0], sizes = [48, 40, 1], steps = [1, 1, 1]} : tensor<48x40x1xf32>
    %2 = graph.conv %x, %1 {strides = [1], pads = [0, 0], dilations = [1]} : tensor<2x48x64xf32>
    %3 = graph.slice %w {starts = [0, 0, 0], sizes = [48, 40, 1], steps = [1, 1, 1]} : tensor<48x40x1xf32>
    %4 = graph.conv %0, %3, %c {strides = [1], pads = [0, 0], dilations = [1]} : tensor<2x48x1xf32>
    %5 = graph.broadcast %4 {shape = [2, 48, 64], dims = [0, 1, 2]} : tensor<2x48x64xf32>
    %6 = graph.add %2, %5 : tensor<2x48x64xf32>
    %7 = graph.relu %6 : tensor<2x48x64xf32>
    func.return %7 : tensor<2x48x64xf32>
  }
}
