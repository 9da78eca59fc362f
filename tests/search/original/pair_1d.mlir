builtin.module {
  func.func @main(%x: tensor<1x256x64xf32> {isoform.name = "x"}) -> (tensor<1x256x64xf32> {isoform.name = "a"}, tensor<1x256x64xf32> {isoform.name = "b"}) {
    %wa = graph.weight @wa : tensor<256x256x3xf32>
    %0 = graph.conv %x, %wa {strides = [1], pads = [1, 1], dilations = [1]} : tensor<1x256x64xf32>
    %wb = graph.weight @wb : tensor<256x256x5xf32>
    %1 = graph.conv %x, %wb {strides = [1], pads = [2, 2], dilations = [1]} : tensor<1x256x64xf32>
    func.return %0, %1 : tensor<1x256x64xf32>, tensor<1x256x64xf32>
  }
}
