// The mean has a product of its own, of one pixel, which is added everywhere.
builtin.module {
  func.func @main(%x: tensor<1x48x20x20xf32> {isoform.name = "x"}) -> (tensor<1x64x20x20xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x96x1x1xf32>
    %c = graph.weight @c : tensor<64xf32>
    %0 = graph.reduce_mean %x {axes = [2, 3]} : tensor<1x48x1x1xf32>
    %1 = graph.slice %w {starts = [0, 48, 0, 0], sizes = [64, 48, 1, 1], steps = [1, 1, 1, 1]} : tensor<64x48x1x1xf32>
    %2 = graph.conv %0, %1, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x1x1xf32>
    %3 = graph.slice %w {starts = [0, 0, 0, 0], sizes = [64, 48, 1, 1], steps = [1, 1, 1, 1]} : tensor<64x48x1x1xf32>
    %4 = graph.conv %x, %3 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %5 = graph.broadcast %2 {shape = [1, 64, 20, 20], dims = [0, 1, 2, 3]} : tensor<1x64x20x20xf32>
    %6 = graph.add %4, %5 : tensor<1x64x20x20xf32>
    %7 = graph.relu %6 : tensor<1x64x20x20xf32>
    func.return %7 : tensor<1x64x20x20xf32>
  }
}
