// Filters whose channels nobody reads go.
builtin.module {
  func.func @main(%x: tensor<1x48x18x18xf32> {isoform.name = "x"}) -> (tensor<1x32x18x18xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x48x3x3xf32>
    %0 = graph.slice %w {starts = [0, 0, 0, 0], sizes = [24, 48, 3, 3], steps = [1, 1, 1, 1]} : tensor<24x48x3x3xf32>
    %c = graph.weight @c : tensor<64xf32>
    %1 = graph.slice %c {starts = [0], sizes = [24], steps = [1]} : tensor<24xf32>
    %2 = graph.conv %x, %0, %1 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x24x18x18xf32>
    %3 = graph.relu %2 : tensor<1x24x18x18xf32>
    %v = graph.weight @v : tensor<32x24x1x1xf32>
    %4 = graph.conv %3, %v {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x32x18x18xf32>
    func.return %4 : tensor<1x32x18x18xf32>
  }
}
