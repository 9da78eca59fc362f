builtin.module {
  func.func @main(%x: tensor<1x64x17x17xf32> {isoform.name = "x"}) -> (tensor<1x96x17x17xf32> {isoform.name = "y"}) {
    %wa = graph.weight @wa : tensor<32x64x1x1xf32>
    %0 = graph.conv %x, %wa {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x32x17x17xf32>
    %1 = graph.relu %0 : tensor<1x32x17x17xf32>
    %wb = graph.weight @wb : tensor<48x64x3x3xf32>
    %2 = graph.conv %x, %wb {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x48x17x17xf32>
    %3 = graph.relu %2 : tensor<1x48x17x17xf32>
    %wc = graph.weight @wc : tensor<16x64x5x5xf32>
    %4 = graph.conv %x, %wc {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [1, 1]} : tensor<1x16x17x17xf32>
    %5 = graph.relu %4 : tensor<1x16x17x17xf32>
    %6 = graph.concat %1, %3, %5 {axis = 1} : tensor<1x96x17x17xf32>
    func.return %6 : tensor<1x96x17x17xf32>
  }
}
