builtin.module {
  func.func @main(%x: tensor<1x64x10x10xf32> {isoform.name = "x"}) -> (tensor<1x32x20x20xf32> {isoform.name = "p"}, tensor<1x48x20x20xf32> {isoform.name = "q"}) {
    %wp = graph.weight @wp : tensor<64x32x2x2xf32>
    %0 = graph.conv_transpose %x, %wp {strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<1x32x20x20xf32>
    %wq = graph.weight @wq : tensor<64x48x2x2xf32>
    %1 = graph.conv_transpose %x, %wq {strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<1x48x20x20xf32>
    func.return %0, %1 : tensor<1x32x20x20xf32>, tensor<1x48x20x20xf32>
  }
}
