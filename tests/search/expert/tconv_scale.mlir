// Both scales go into the weight.
builtin.module {
  func.func @main(%x: tensor<1x64x12x12xf32> {isoform.name = "x"}) -> (tensor<1x32x24x24xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x32x2x2xf32>
    %g = graph.weight @g : tensor<64xf32>
    %0 = graph.broadcast %g {shape = [64, 32, 2, 2], dims = [0]} : tensor<64x32x2x2xf32>
    %1 = graph.mul %w, %0 : tensor<64x32x2x2xf32>
    %h = graph.weight @h : tensor<32xf32>
    %2 = graph.broadcast %h {shape = [64, 32, 2, 2], dims = [1]} : tensor<64x32x2x2xf32>
    %3 = graph.mul %1, %2 : tensor<64x32x2x2xf32>
    %4 = graph.conv_transpose %x, %3 {strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<1x32x24x24xf32>
    func.return %4 : tensor<1x32x24x24xf32>
  }
}
