builtin.module {
  func.func @main(%x: tensor<1x128x8x8xf32> {isoform.name = "x"}) -> (tensor<1x64x8x8xf32> {isoform.name = "p"}, tensor<1x64x8x8xf32> {isoform.name = "q"}) {
    %wa = graph.weight @wa : tensor<64x128x3x3xf32>
    %0 = graph.conv %x, %wa {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x8x8xf32>
    %wb = graph.weight @wb : tensor<64x128x5x5xf32>
    %1 = graph.conv %x, %wb {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [1, 1]} : tensor<1x64x8x8xf32>
    func.return %0, %1 : tensor<1x64x8x8xf32>, tensor<1x64x8x8xf32>
  }
}
