// A pointwise convolution commutes with the sum of its pixels.
builtin.module {
  func.func @main(%x: tensor<2x64x18x18xf32> {isoform.name = "x"}) -> (tensor<2x128xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_sum %x {axes = [2, 3]} : tensor<2x64x1x1xf32>
    %w = graph.weight @w : tensor<128x64x1x1xf32>
    %1 = graph.conv %0, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x128x1x1xf32>
    %2 = graph.reshape %1 {shape = [2, 128]} : tensor<2x128xf32>
    func.return %2 : tensor<2x128xf32>
  }
}
