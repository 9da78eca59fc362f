// One convolution of a batch of two.
builtin.module {
  func.func @main(%xp: tensor<1x32x20x20xf32> {isoform.name = "xp"}, %xq: tensor<1x32x20x20xf32> {isoform.name = "xq"}) -> (tensor<1x48x20x20xf32> {isoform.name = "p"}, tensor<1x48x20x20xf32> {isoform.name = "q"}) {
    %0 = graph.concat %xp, %xq {axis = 0} : tensor<2x32x20x20xf32>
    %w = graph.weight @w : tensor<48x32x3x3xf32>
    %c = graph.weight @c : tensor<48xf32>
    %1 = graph.conv %0, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<2x48x20x20xf32>
    %2 = graph.relu %1 : tensor<2x48x20x20xf32>
    %3, %4 = graph.split %2 {axis = 0, sizes = [1, 1]} : tensor<1x48x20x20xf32>, tensor<1x48x20x20xf32>
    func.return %3, %4 : tensor<1x48x20x20xf32>, tensor<1x48x20x20xf32>
  }
}
