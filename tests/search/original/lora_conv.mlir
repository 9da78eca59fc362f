builtin.module {
  func.func @main(%x: tensor<1x64x20x20xf32> {isoform.name = "x"}) -> (tensor<1x96x20x20xf32> {isoform.name = "y"}) {
    %a = graph.weight @a : tensor<8x64x3x3xf32>
    %0 = graph.conv %x, %a {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x8x20x20xf32>
    %u = graph.weight @u : tensor<96x8x1x1xf32>
    %1 = graph.conv %0, %u {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x96x20x20xf32>
    %w = graph.weight @w : tensor<96x64x3x3xf32>
    %2 = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x96x20x20xf32>
    %3 = graph.add %2, %1 : tensor<1x96x20x20xf32>
    func.return %3 : tensor<1x96x20x20xf32>
  }
}
