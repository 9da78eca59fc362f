builtin.module {
  func.func @main(%x: tensor<1x64x12x12xf32> {isoform.name = "x"}) -> (tensor<1x32x24x24xf32> {isoform.name = "y"}) {
    %g = graph.weight @g : tensor<64xf32>
    %0 = graph.broadcast %g {shape = [1, 64, 12, 12], dims = [1]} : tensor<1x64x12x12xf32>
    %1 = graph.mul %x, %0 : tensor<1x64x12x12xf32>
    %w = graph.weight @w : tensor<64x32x2x2xf32>
    %2 = graph.conv_transpose %1, %w {strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<1x32x24x24xf32>
    %h = graph.weight @h : tensor<32xf32>
    %3 = graph.broadcast %h {shape = [1, 32, 24, 24], dims = [1]} : tensor<1x32x24x24xf32>
    %4 = graph.mul %2, %3 : tensor<1x32x24x24xf32>
    func.return %4 : tensor<1x32x24x24xf32>
  }
}
