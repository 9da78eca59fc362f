builtin.module {
  func.func @main(%p: tensor<1x16x20x20xf32> {isoform.name = "p"}, %q: tensor<1x48x20x20xf32> {isoform.name = "q"}) -> (tensor<1x64x10x10xf32> {isoform.name = "y"}) {
    %0 = graph.max_pool %p {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x16x10x10xf32>
    %1 = graph.max_pool %q {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x48x10x10xf32>
    %2 = graph.concat %0, %1 {axis = 1} : tensor<1x64x10x10xf32>
    %3 = graph.relu %2 : tensor<1x64x10x10xf32>
    func.return %3 : tensor<1x64x10x10xf32>
  }
}
