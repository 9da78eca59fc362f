// A low rank beside a convolution is added to its weights.
builtin.module {
  func.func @main(%x: tensor<1x64x20x20xf32> {isoform.name = "x"}) -> (tensor<1x96x20x20xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x64x3x3xf32>
    %a = graph.weight @a : tensor<8x64x3x3xf32>
    %0 = graph.reshape %a {shape = [8, 576]} : tensor<8x576xf32>
    %u = graph.weight @u : tensor<96x8x1x1xf32>
    %1 = graph.reshape %u {shape = [96, 8]} : tensor<96x8xf32>
    %2 = graph.matmul %1, %0 : tensor<96x576xf32>
    %3 = graph.reshape %2 {shape = [96, 64, 3, 3]} : tensor<96x64x3x3xf32>
    %4 = graph.add %w, %3 : tensor<96x64x3x3xf32>
    %5 = graph.conv %x, %4 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x96x20x20xf32>
    func.return %5 : tensor<1x96x20x20xf32>
  }
}
