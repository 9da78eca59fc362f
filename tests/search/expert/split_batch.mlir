// The images of a batch, taken apart for nothing.
builtin.module {
  func.func @main(%x: tensor<4x24x18x18xf32> {isoform.name = "x"}) -> (tensor<4x40x18x18xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<40x24x3x3xf32>
    %c = graph.weight @c : tensor<40xf32>
    %0 = graph.conv %x, %w, %c {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<4x40x18x18xf32>
    %1 = graph.relu %0 : tensor<4x40x18x18xf32>
    func.return %1 : tensor<4x40x18x18xf32>
  }
}
