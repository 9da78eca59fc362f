builtin.module {
  func.func @main(%x: tensor<1x512x7x7xf32> {isoform.name = "x"}) -> (tensor<1x512x7x7xf32> {isoform.name = "p"}, tensor<1x512x7x7xf32> {isoform.name = "q"}) {
    %w3 = graph.weight @w3 : tensor<512x512x3x3xf32>
    %0 = graph.conv %x, %w3 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x512x7x7xf32>
    %1 = graph.relu %0 : tensor<1x512x7x7xf32>
    %w1 = graph.weight @w1 : tensor<512x512x1x1xf32>
    %2 = graph.conv %x, %w1 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x512x7x7xf32>
    %3 = graph.relu %2 : tensor<1x512x7x7xf32>
    func.return %1, %3 : tensor<1x512x7x7xf32>, tensor<1x512x7x7xf32>
  }
}
