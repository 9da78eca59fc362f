// The small image goes through its product before it is enlarged.
builtin.module {
  func.func @main(%x: tensor<1x96x10x10xf32> {isoform.name = "x"}, %z: tensor<1x48x20x20xf32> {isoform.name = "z"}) -> (tensor<1x64x20x20xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x96x1x1xf32>
    %v = graph.weight @v : tensor<64x48x1x1xf32>
    %c = graph.weight @c : tensor<64xf32>
    %d = graph.weight @d : tensor<64xf32>
    %0 = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x10x10xf32>
    %1 = graph.broadcast %0 {shape = [1, 64, 10, 2, 10, 2], dims = [0, 1, 2, 4]} : tensor<1x64x10x2x10x2xf32>
    %2 = graph.reshape %1 {shape = [1, 64, 20, 20]} : tensor<1x64x20x20xf32>
    %3 = graph.add %c, %d : tensor<64xf32>
    %4 = graph.conv %z, %v, %3 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %5 = graph.add %2, %4 : tensor<1x64x20x20xf32>
    func.return %5 : tensor<1x64x20x20xf32>
  }
}
