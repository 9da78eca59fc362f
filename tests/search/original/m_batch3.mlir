builtin.module {
  func.func @main(%x: tensor<6x32x7x9xf32> {isoform.name = "x"}) -> (tensor<6x48x7x9xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<48x32x3x3xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<6x48x7x9xf32>
    func.return %0 : tensor<6x48x7x9xf32>
  }
}
