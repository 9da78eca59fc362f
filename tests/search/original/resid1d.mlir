builtin.module {
  func.func @main(%x: tensor<2x64x70xf32> {isoform.name = "x"}) -> (tensor<2x64x70xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x64x3xf32>
    %c = graph.weight @c : tensor<64xf32>
    %0 = graph.conv %x, %w, %c {strides = [1], pads = [1, 1], dilations = [1]} : tensor<2x64x70xf32>
    %1 = graph.add %x, %0 : tensor<2x64x70xf32>
    func.return %1 : tensor<2x64x70xf32>
  }
}
