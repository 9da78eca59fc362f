builtin.module {
  func.func @main(%x: tensor<1x64x18x18xf32> {isoform.name = "x"}, %z: tensor<1x48x18x18xf32> {isoform.name = "z"}) -> (tensor<1x32x18x18xf32> {isoform.name = "y"}) {
    %a = graph.weight @a : tensor<128x64x1x1xf32>
    %0 = graph.conv %x, %a {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x128x18x18xf32>
    %c = graph.weight @c : tensor<96x48x1x1xf32>
    %1 = graph.conv %z, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x96x18x18xf32>
    %2 = graph.concat %0, %1 {axis = 1} : tensor<1x224x18x18xf32>
    %w = graph.weight @w : tensor<32x224x1x1xf32>
    %3 = graph.conv %2, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x32x18x18xf32>
    func.return %3 : tensor<1x32x18x18xf32>
  }
}
