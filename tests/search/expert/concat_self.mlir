// The halves of the kernel are added.
builtin.module {
  func.func @main(%x: tensor<1x48x18x18xf32> {isoform.name = "x"}) -> (tensor<1x64x18x18xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x96x3x3xf32>
    %0, %1 = graph.split %w {axis = 1, sizes = [48, 48]} : tensor<64x48x3x3xf32>, tensor<64x48x3x3xf32>
    %2 = graph.add %0, %1 : tensor<64x48x3x3xf32>
    %3 = graph.conv %x, %2 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x18x18xf32>
    func.return %3 : tensor<1x64x18x18xf32>
  }
}
