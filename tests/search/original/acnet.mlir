builtin.module {
  func.func @main(%x: tensor<1x64x20x20xf32> {isoform.name = "x"}) -> (tensor<1x64x20x20xf32> {isoform.name = "y"}) {
    %wa = graph.weight @wa : tensor<64x64x3x3xf32>
    %0 = graph.conv %x, %wa {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %wb = graph.weight @wb : tensor<64x64x1x3xf32>
    %1 = graph.conv %x, %wb {strides = [1, 1], pads = [0, 1, 0, 1], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %wc = graph.weight @wc : tensor<64x64x3x1xf32>
    %2 = graph.conv %x, %wc {strides = [1, 1], pads = [1, 0, 1, 0], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %3 = graph.add %0, %1 : tensor<1x64x20x20xf32>
    %4 = graph.add %3, %2 : tensor<1x64x20x20xf32>
    %5 = graph.relu %4 : tensor<1x64x20x20xf32>
    func.return %5 : tensor<1x64x20x20xf32>
  }
}
