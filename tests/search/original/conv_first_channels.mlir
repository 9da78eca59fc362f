builtin.module {
  func.func @main(%x: tensor<1x48x18x18xf32> {isoform.name = "x"}) -> (tensor<1x32x18x18xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x48x3x3xf32>
    %c = graph.weight @c : tensor<64xf32>
    %0 = graph.conv %x, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x64x18x18xf32>
    %1 = graph.relu %0 : tensor<1x64x18x18xf32>
    %2, %3 = graph.split %1 {axis = 1, sizes = [24, 40]} : tensor<1x24x18x18xf32>, tensor<1x40x18x18xf32>
    %v = graph.weight @v : tensor<32x24x1x1xf32>
    %4 = graph.conv %2, %v {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x32x18x18xf32>
    func.return %4 : tensor<1x32x18x18xf32>
  }
}
