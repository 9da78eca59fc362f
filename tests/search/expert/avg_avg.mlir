// Averages of averages that tile are averages.
builtin.module {
  func.func @main(%x: tensor<1x64x32x32xf32> {isoform.name = "x"}) -> (tensor<1x64x8x8xf32> {isoform.name = "y"}) {
    %0 = graph.avg_pool %x {kernel = [4, 4], strides = [4, 4], pads = [0, 0, 0, 0], dilations = [1, 1], count_include_pad = true} : tensor<1x64x8x8xf32>
    func.return %0 : tensor<1x64x8x8xf32>
  }
}
