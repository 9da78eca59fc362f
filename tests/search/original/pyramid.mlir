builtin.module {
  func.func @main(%x: tensor<1x96x10x10xf32> {isoform.name = "x"}, %z: tensor<1x48x20x20xf32> {isoform.name = "z"}) -> (tensor<1x64x20x20xf32> {isoform.name = "y"}) {
    %0 = graph.broadcast %x {shape = [1, 96, 10, 2, 10, 2], dims = [0, 1, 2, 4]} : tensor<1x96x10x2x10x2xf32>
    %1 = graph.reshape %0 {shape = [1, 96, 20, 20]} : tensor<1x96x20x20xf32>
    %w = graph.weight @w : tensor<64x96x1x1xf32>
    %c = graph.weight @c : tensor<64xf32>
    %2 = graph.conv %1, %w, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %v = graph.weight @v : tensor<64x48x1x1xf32>
    %d = graph.weight @d : tensor<64xf32>
    %3 = graph.conv %z, %v, %d {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x20x20xf32>
    %4 = graph.add %2, %3 : tensor<1x64x20x20xf32>
    func.return %4 : tensor<1x64x20x20xf32>
  }
}
