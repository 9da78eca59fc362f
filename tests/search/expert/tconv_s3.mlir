// The kernel is as wide as the stride, so no two pixels meet: one product, and its results in
// another order.
func.func @main(%x: tensor<1x256x5x5xf32> {isoform.name = "x"}) -> (tensor<1x128x15x15xf32> {isoform.name = "y"}) {
  %pixels = graph.reshape %x {shape = [256, 25]} : tensor<256x25xf32>
  %w = graph.weight @w : tensor<256x128x3x3xf32>
  %matrix = graph.reshape %w {shape = [256, 1152]} : tensor<256x1152xf32>
  %product = graph.matmul %matrix, %pixels {transpose_a = true} : tensor<1152x25xf32>
  %taps = graph.reshape %product {shape = [128, 3, 3, 5, 5]} : tensor<128x3x3x5x5xf32>
  %places = graph.transpose %taps {perm = [0, 3, 1, 4, 2]} : tensor<128x5x3x5x3xf32>
  %y = graph.reshape %places {shape = [1, 128, 15, 15]} : tensor<1x128x15x15xf32>
  func.return %y : tensor<1x128x15x15xf32>
}
