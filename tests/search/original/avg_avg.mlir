builtin.module {
  func.func @main(%x: tensor<1x64x32x32xf32> {isoform.name = "x"}) -> (tensor<1x64x8x8xf32> {isoform.name = "y"}) {
    %0 = graph.avg_pool %x {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], count_include_pad = true} : tensor<1x64x16x16xf32>
    %1 = graph.avg_pool %0 {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], count_include_pad = true} : tensor<1x64x8x8xf32>
    func.return %1 : tensor<1x64x8x8xf32>
  }
}
