builtin.module {
  func.func @main(%x: tensor<1x32x24x24xf32> {isoform.name = "x"}) -> (tensor<1x256xf32> {isoform.name = "y"}) {
    %0 = graph.avg_pool %x {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], count_include_pad = true} : tensor<1x32x12x12xf32>
    %w = graph.weight @w : tensor<256x32x1x1xf32>
    %1 = graph.conv %0, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x256x12x12xf32>
    %2 = graph.reduce_mean %1 {axes = [2, 3], keep_dims = false} : tensor<1x256xf32>
    func.return %2 : tensor<1x256xf32>
  }
}
