builtin.module {
  func.func @main(%x: tensor<1x48x20x20xf32> {isoform.name = "x"}) -> (tensor<1x64x20x20xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [2, 3]} : tensor<1x48x1x1xf32>
    %1 = graph.broadcast %0 {shape = [1, 48, 20, 20], dims = [0, 1, 2, 3]} : tensor<1x48x20x20xf32>
    %2 = graph.concat %x, %1 {axis = 1} : tensor<1x96x20x20xf32>
    %w = graph.weight @w : tensor<64x96x1x1xf32>
    %c = graph.weight @c : tensor<64xf32>
    %3 = graph.conv %2, %w, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %4 = graph.relu %3 : tensor<1x64x20x20xf32>
    func.return %4 : tensor<1x64x20x20xf32>
  }
}
