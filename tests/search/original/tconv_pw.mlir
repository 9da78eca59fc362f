builtin.module {
  func.func @main(%x: tensor<1x48x14x14xf32> {isoform.name = "x"}) -> (tensor<1x24x28x28xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<48x96x2x2xf32>
    %0 = graph.conv_transpose %x, %w {strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<1x96x28x28xf32>
    %v = graph.weight @v : tensor<24x96x1x1xf32>
    %c = graph.weight @c : tensor<24xf32>
    %1 = graph.conv %0, %v, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x24x28x28xf32>
    func.return %1 : tensor<1x24x28x28xf32>
  }
}
