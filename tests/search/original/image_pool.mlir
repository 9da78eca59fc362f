builtin.module {
  func.func @main(%x: tensor<1x128x24x24xf32> {isoform.name = "x"}) -> (tensor<1x64x24x24xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [2, 3]} : tensor<1x128x1x1xf32>
    %1 = graph.broadcast %0 {shape = [1, 128, 24, 24], dims = [0, 1, 2, 3]} : tensor<1x128x24x24xf32>
    %w = graph.weight @w : tensor<64x128x1x1xf32>
    %c = graph.weight @c : tensor<64xf32>
    %2 = graph.conv %1, %w, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x24x24xf32>
    %3 = graph.relu %2 : tensor<1x64x24x24xf32>
    func.return %3 : tensor<1x64x24x24xf32>
  }
}
