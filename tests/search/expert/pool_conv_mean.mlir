// The mean of means is the mean; one pixel is convolved.
builtin.module {
  func.func @main(%x: tensor<1x32x24x24xf32> {isoform.name = "x"}) -> (tensor<1x256xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [2, 3]} : tensor<1x32x1x1xf32>
    %w = graph.weight @w : tensor<256x32x1x1xf32>
    %1 = graph.conv %0, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x256x1x1xf32>
    %2 = graph.reshape %1 {shape = [1, 256]} : tensor<1x256xf32>
    func.return %2 : tensor<1x256xf32>
  }
}
