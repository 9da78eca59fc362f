builtin.module {
  func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x64x28x28xf32> {isoform.name = "y"}) {
    %w1 = graph.weight @w1 : tensor<256x64x1x1xf32>
    %0 = graph.conv %x, %w1 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x256x28x28xf32>
    %w2 = graph.weight @w2 : tensor<64x256x1x1xf32>
    %1 = graph.conv %0, %w2 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x28x28xf32>
    func.return %1 : tensor<1x64x28x28xf32>
  }
}
