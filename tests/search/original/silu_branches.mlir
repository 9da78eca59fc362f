builtin.module {
  func.func @main(%x: tensor<2x48x15x11xf32> {isoform.name = "x"}) -> (tensor<2x64x15x11xf32> {isoform.name = "y"}) {
    %wa = graph.weight @wa : tensor<24x48x1x1xf32>
    %0 = graph.conv %x, %wa {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x24x15x11xf32>
    %1 = graph.sigmoid %0 : tensor<2x24x15x11xf32>
    %2 = graph.mul %0, %1 : tensor<2x24x15x11xf32>
    %wb = graph.weight @wb : tensor<40x48x1x1xf32>
    %3 = graph.conv %x, %wb {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x40x15x11xf32>
    %4 = graph.sigmoid %3 : tensor<2x40x15x11xf32>
    %5 = graph.mul %3, %4 : tensor<2x40x15x11xf32>
    %6 = graph.concat %2, %5 {axis = 1} : tensor<2x64x15x11xf32>
    func.return %6 : tensor<2x64x15x11xf32>
  }
}
