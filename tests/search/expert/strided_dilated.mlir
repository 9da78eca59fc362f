// What is read is a quarter of the image, and lies side by side.
builtin.module {
  func.func @main(%x: tensor<1x96x26x26xf32> {isoform.name = "x"}) -> (tensor<1x96x13x13xf32> {isoform.name = "y"}) {
    %0 = graph.slice %x {starts = [0, 0, 0, 0], sizes = [1, 96, 13, 13], steps = [1, 1, 2, 2]} : tensor<1x96x13x13xf32>
    %w = graph.weight @w : tensor<96x96x3x3xf32>
    %1 = graph.conv %0, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x96x13x13xf32>
    func.return %1 : tensor<1x96x13x13xf32>
  }
}
