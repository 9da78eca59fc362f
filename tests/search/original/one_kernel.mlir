builtin.module {
  func.func @main(%xp: tensor<1x32x20x20xf32> {isoform.name = "xp"}, %xq: tensor<1x32x20x20xf32> {isoform.name = "xq"}) -> (tensor<1x48x20x20xf32> {isoform.name = "p"}, tensor<1x48x20x20xf32> {isoform.name = "q"}) {
    %w = graph.weight @w : tensor<48x32x3x3xf32>
    %c = graph.weight @c : tensor<48xf32>
    %0 = graph.conv %xp, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x48x20x20xf32>
    %1 = graph.relu %0 : tensor<1x48x20x20xf32>
    %2 = graph.conv %xq, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x48x20x20xf32>
    %3 = graph.relu %2 : tensor<1x48x20x20xf32>
    func.return %1, %3 : tensor<1x48x20x20xf32>, tensor<1x48x20x20xf32>
  }
}
