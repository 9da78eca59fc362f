builtin.module {
  func.func @main(%x: tensor<1x64x16x16xf32> {isoform.name = "x"}) -> (tensor<1x96x16x16xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_mean %x {axes = [2, 3]} : tensor<1x64x1x1xf32>
    %w = graph.weight @w : tensor<16x64x1x1xf32>
    %c = graph.weight @c : tensor<16xf32>
    %1 = graph.conv %0, %w, %c {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x16x1x1xf32>
    %2 = graph.relu %1 : tensor<1x16x1x1xf32>
    %v = graph.weight @v : tensor<64x16x1x1xf32>
    %d = graph.weight @d : tensor<64xf32>
    %3 = graph.conv %2, %v, %d {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x64x1x1xf32>
    %4 = graph.sigmoid %3 : tensor<1x64x1x1xf32>
    %5 = graph.broadcast %4 {shape = [1, 64, 16, 16], dims = [0, 1, 2, 3]} : tensor<1x64x16x16xf32>
    %6 = graph.mul %x, %5 : tensor<1x64x16x16xf32>
    %u = graph.weight @u : tensor<96x64x1x1xf32>
    %7 = graph.conv %6, %u {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x96x16x16xf32>
    func.return %7 : tensor<1x96x16x16xf32>
  }
}
