builtin.module {
  func.func @main(%x: tensor<1x48x18x18xf32> {isoform.name = "x"}) -> (tensor<1x64x18x18xf32> {isoform.name = "y"}) {
    %0 = graph.concat %x, %x {axis = 1} : tensor<1x96x18x18xf32>
    %w = graph.weight @w : tensor<64x96x3x3xf32>
    %1 = graph.conv %0, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x18x18xf32>
    func.return %1 : tensor<1x64x18x18xf32>
  }
}
