builtin.module {
  func.func @main(%x: tensor<1x48x26x26xf32> {isoform.name = "x"}) -> (tensor<1x48x26x26xf32> {isoform.name = "y"}) {
    %g = graph.weight @g : tensor<48xf32>
    %0 = graph.broadcast %g {shape = [1, 48, 26, 26], dims = [1]} : tensor<1x48x26x26xf32>
    %1 = graph.mul %x, %0 : tensor<1x48x26x26xf32>
    %w = graph.weight @w : tensor<48x1x5x5xf32>
    %2 = graph.conv %1, %w {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [1, 1], groups = 48} : tensor<1x48x26x26xf32>
    func.return %2 : tensor<1x48x26x26xf32>
  }
}
