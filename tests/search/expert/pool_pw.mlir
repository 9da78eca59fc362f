// A pointwise convolution commutes with an average: of fewer pixels.
builtin.module {
  func.func @main(%x: tensor<1x128x24x24xf32> {isoform.name = "x"}) -> (tensor<1x32x12x12xf32> {isoform.name = "y"}) {
    %v = graph.weight @v : tensor<32x128x1x1xf32>
    %0 = graph.avg_pool %x {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], count_include_pad = true} : tensor<1x128x12x12xf32>
    %1 = graph.conv %0, %v {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x32x12x12xf32>
    func.return %1 : tensor<1x32x12x12xf32>
  }
}
