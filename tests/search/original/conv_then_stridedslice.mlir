builtin.module {
  func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x64x14x14xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x64x3x3xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x28x28xf32>
    %1 = graph.slice %0 {starts = [0, 0, 0, 0], sizes = [1, 64, 14, 14], steps = [1, 1, 2, 2]} : tensor<1x64x14x14xf32>
    func.return %1 : tensor<1x64x14x14xf32>
  }
}
