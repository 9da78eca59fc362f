builtin.module {
  func.func @main(%x: tensor<1x256x33x33xf32> {isoform.name = "x"}) -> (tensor<1x192x33x33xf32> {isoform.name = "y"}) {
    %wa = graph.weight @wa : tensor<64x256x3x3xf32>
    %0 = graph.conv %x, %wa {strides = [1, 1], pads = [6, 6, 6, 6], dilations = [6, 6]} : tensor<1x64x33x33xf32>
    %1 = graph.relu %0 : tensor<1x64x33x33xf32>
    %wb = graph.weight @wb : tensor<64x256x3x3xf32>
    %2 = graph.conv %x, %wb {strides = [1, 1], pads = [12, 12, 12, 12], dilations = [12, 12]} : tensor<1x64x33x33xf32>
    %3 = graph.relu %2 : tensor<1x64x33x33xf32>
    %wc = graph.weight @wc : tensor<64x256x3x3xf32>
    %4 = graph.conv %x, %wc {strides = [1, 1], pads = [18, 18, 18, 18], dilations = [18, 18]} : tensor<1x64x33x33xf32>
    %5 = graph.relu %4 : tensor<1x64x33x33xf32>
    %6 = graph.concat %1, %3, %5 {axis = 1} : tensor<1x192x33x33xf32>
    func.return %6 : tensor<1x192x33x33xf32>
  }
}
