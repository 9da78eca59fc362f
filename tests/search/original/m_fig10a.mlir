builtin.module {
  func.func @main(%x: tensor<1x96x17x17xf32> {isoform.name = "x"}) -> (tensor<1x64x17x17xf32> {isoform.name = "p"}, tensor<1x40x17x17xf32> {isoform.name = "q"}) {
    %wa = graph.weight @wa : tensor<64x96x3x3xf32>
    %0 = graph.conv %x, %wa {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x17x17xf32>
    %wb = graph.weight @wb : tensor<40x96x3x3xf32>
    %1 = graph.conv %x, %wb {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x40x17x17xf32>
    func.return %0, %1 : tensor<1x64x17x17xf32>, tensor<1x40x17x17xf32>
  }
}
