// Pools of two images are one pool of both.
builtin.module {
  func.func @main(%p: tensor<1x16x20x20xf32> {isoform.name = "p"}, %q: tensor<1x48x20x20xf32> {isoform.name = "q"}) -> (tensor<1x64x10x10xf32> {isoform.name = "y"}) {
    %0 = graph.concat %p, %q {axis = 1} : tensor<1x64x20x20xf32>
    %1 = graph.max_pool %0 {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x10x10xf32>
    %2 = graph.relu %1 : tensor<1x64x10x10xf32>
    func.return %2 : tensor<1x64x10x10xf32>
  }
}
