builtin.module {
  func.func @main(%x: tensor<1x256x16x16xf32> {isoform.name = "x"}) -> (tensor<1x64x16x16xf32> {isoform.name = "p"}, tensor<1x64x16x16xf32> {isoform.name = "q"}) {
    %wa = graph.weight @wa : tensor<64x256x1x7xf32>
    %0 = graph.conv %x, %wa {strides = [1, 1], pads = [0, 3, 0, 3], dilations = [1, 1]} : tensor<1x64x16x16xf32>
    %wb = graph.weight @wb : tensor<64x256x7x1xf32>
    %1 = graph.conv %x, %wb {strides = [1, 1], pads = [3, 0, 3, 0], dilations = [1, 1]} : tensor<1x64x16x16xf32>
    func.return %0, %1 : tensor<1x64x16x16xf32>, tensor<1x64x16x16xf32>
  }
}
