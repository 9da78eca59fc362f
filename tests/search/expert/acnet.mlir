// The row and the column are square kernels with zeros: one convolution.
builtin.module {
  func.func @main(%x: tensor<1x64x20x20xf32> {isoform.name = "x"}) -> (tensor<1x64x20x20xf32> {isoform.name = "y"}) {
    %wa = graph.weight @wa : tensor<64x64x3x3xf32>
    %wb = graph.weight @wb : tensor<64x64x1x3xf32>
    %0 = graph.pad %wb {pads = [0, 0, 1, 0, 0, 0, 1, 0]} : tensor<64x64x3x3xf32>
    %1 = graph.add %wa, %0 : tensor<64x64x3x3xf32>
    %wc = graph.weight @wc : tensor<64x64x3x1xf32>
    %2 = graph.pad %wc {pads = [0, 0, 0, 1, 0, 0, 0, 1]} : tensor<64x64x3x3xf32>
    %3 = graph.add %1, %2 : tensor<64x64x3x3xf32>
    %4 = graph.conv %x, %3 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %5 = graph.relu %4 : tensor<1x64x20x20xf32>
    func.return %5 : tensor<1x64x20x20xf32>
  }
}
