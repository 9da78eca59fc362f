builtin.module {
  func.func @main(%x: tensor<1x256x5x5xf32> {isoform.name = "x"}) -> (tensor<1x128x15x15xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<256x128x3x3xf32>
    %0 = graph.conv_transpose %x, %w {strides = [3, 3], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<1x128x15x15xf32>
    func.return %0 : tensor<1x128x15x15xf32>
  }
}
