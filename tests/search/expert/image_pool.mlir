// One pixel is computed, and repeated afterwards.
builtin.module {
  func.func @main(%x: tensor<1x128x24x24xf32> {isoform.name = "x"}) -> (tensor<1x64x24x24xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [2, 3]} : tensor<1x128x1x1xf32>
    %w = graph.weight @w : tensor<64x128x1x1xf32>
    %c = graph.weight @c : tensor<64xf32>
    %1 = graph.conv %0, %w, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x1x1xf32>
    %2 = graph.relu %1 : tensor<1x64x1x1xf32>
    %3 = graph.broadcast %2 {shape = [1, 64, 24, 24], dims = [0, 1, 2, 3]} : tensor<1x64x24x24xf32>
    func.return %3 : tensor<1x64x24x24xf32>
  }
}
