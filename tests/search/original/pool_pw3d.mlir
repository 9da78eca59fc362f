builtin.module {
  func.func @main(%x: tensor<1x48x8x16x16xf32> {isoform.name = "x"}) -> (tensor<1x64x4x8x8xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x48x1x1x1xf32>
    %0 = graph.conv %x, %w {strides = [1, 1, 1], pads = [0, 0, 0, 0, 0, 0], dilations = [1, 1, 1]} : tensor<1x64x8x16x16xf32>
    %1 = graph.avg_pool %0 {kernel = [2, 2, 2], strides = [2, 2, 2], pads = [0, 0, 0, 0, 0, 0], dilations = [1, 1, 1], count_include_pad = true} : tensor<1x64x4x8x8xf32>
    func.return %1 : tensor<1x64x4x8x8xf32>
  }
}
