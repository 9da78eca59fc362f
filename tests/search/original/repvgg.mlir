builtin.module {
  func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x64x28x28xf32> {isoform.name = "y"}) {
    %w3 = graph.weight @w3 : tensor<64x64x3x3xf32>
    %b3 = graph.weight @b3 : tensor<64xf32>
    %0 = graph.conv %x, %w3, %b3 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x28x28xf32>
    %w1 = graph.weight @w1 : tensor<64x64x1x1xf32>
    %b1 = graph.weight @b1 : tensor<64xf32>
    %1 = graph.conv %x, %w1, %b1 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x28x28xf32>
    %2 = graph.add %0, %1 : tensor<1x64x28x28xf32>
    %3 = graph.add %2, %x : tensor<1x64x28x28xf32>
    %4 = graph.relu %3 : tensor<1x64x28x28xf32>
    func.return %4 : tensor<1x64x28x28xf32>
  }
}
