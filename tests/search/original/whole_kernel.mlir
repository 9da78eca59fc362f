builtin.module {
  func.func @main(%x: tensor<8x32x5x5xf32> {isoform.name = "x"}) -> (tensor<8x64x1x1xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x32x5x5xf32>
    %c = graph.weight @c : tensor<64xf32>
    %0 = graph.conv %x, %w, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<8x64x1x1xf32>
    func.return %0 : tensor<8x64x1x1xf32>
  }
}
