builtin.module {
  func.func @main(%x: tensor<1x64x22x18xf32> {isoform.name = "x"}) -> (tensor<1x96x22x18xf32> {isoform.name = "y"}) {
    %g = graph.weight @g : tensor<64xf32>
    %0 = graph.broadcast %g {shape = [1, 64, 22, 18], dims = [1]} : tensor<1x64x22x18xf32>
    %1 = graph.div %x, %0 : tensor<1x64x22x18xf32>
    %w = graph.weight @w : tensor<96x16x3x3xf32>
    %2 = graph.conv %1, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 4} : tensor<1x96x22x18xf32>
    func.return %2 : tensor<1x96x22x18xf32>
  }
}
