builtin.module {
  func.func @main(%x: tensor<1x128x16x16xf32> {isoform.name = "x"}) -> (tensor<1x64x32x32xf32> {isoform.name = "y"}) {
    %0 = graph.broadcast %x {shape = [1, 128, 16, 2, 16, 2], dims = [0, 1, 2, 4]} : tensor<1x128x16x2x16x2xf32>
    %1 = graph.reshape %0 {shape = [1, 128, 32, 32]} : tensor<1x128x32x32xf32>
    %w = graph.weight @w : tensor<64x128x1x1xf32>
    %2 = graph.conv %1, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x32x32xf32>
    func.return %2 : tensor<1x64x32x32xf32>
  }
}
