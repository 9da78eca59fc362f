// One convolution, and the activation in its epilogue.
builtin.module {
  func.func @main(%x: tensor<2x48x15x11xf32> {isoform.name = "x"}) -> (tensor<2x64x15x11xf32> {isoform.name = "y"}) {
    %wa = graph.weight @wa : tensor<24x48x1x1xf32>
    %wb = graph.weight @wb : tensor<40x48x1x1xf32>
    %0 = graph.concat %wa, %wb {axis = 0} : tensor<64x48x1x1xf32>
    %1 = graph.conv %x, %0 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x64x15x11xf32>
    %2 = graph.sigmoid %1 : tensor<2x64x15x11xf32>
    %3 = graph.mul %1, %2 : tensor<2x64x15x11xf32>
    func.return %3 : tensor<2x64x15x11xf32>
  }
}
