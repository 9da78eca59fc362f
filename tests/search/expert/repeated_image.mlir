// Mix channels of the small image, then repeat its pixels.
builtin.module {
  func.func @main(%x: tensor<1x128x16x16xf32> {isoform.name = "x"}) -> (tensor<1x64x32x32xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x128x1x1xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x16x16xf32>
    %1 = graph.broadcast %0 {shape = [1, 64, 16, 2, 16, 2], dims = [0, 1, 2, 4]} : tensor<1x64x16x2x16x2xf32>
    %2 = graph.reshape %1 {shape = [1, 64, 32, 32]} : tensor<1x64x32x32xf32>
    func.return %2 : tensor<1x64x32x32xf32>
  }
}
