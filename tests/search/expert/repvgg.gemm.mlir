// As repvgg.mlir, and then one product for all taps, which the result adds where they belong.
func.func @main(%x: tensor<1x64x28x28xf32> {isoform.name = "x"}) -> (tensor<1x64x28x28xf32> {isoform.name = "y"}) {
  %0 = graph.constant dense<1.000000e+00> : tensor<1xf32>
  %unit_row = graph.pad %0 {pads = [0, 64]} : tensor<65xf32>
  %1 = graph.broadcast %unit_row {shape = [64, 65], dims = [1]} : tensor<64x65xf32>
  %2 = graph.reshape %1 {shape = [4160]} : tensor<4160xf32>
  %3 = graph.slice %2 {starts = [0], sizes = [4096], steps = [1]} : tensor<4096xf32>
  %identity = graph.reshape %3 {shape = [64, 64, 1, 1]} : tensor<64x64x1x1xf32>
  %w1 = graph.weight @w1 : tensor<64x64x1x1xf32>
  %4 = graph.add %w1, %identity : tensor<64x64x1x1xf32>
  %middle = graph.pad %4 {pads = [0, 0, 1, 1, 0, 0, 1, 1]} : tensor<64x64x3x3xf32>
  %w3 = graph.weight @w3 : tensor<64x64x3x3xf32>
  %w = graph.add %w3, %middle : tensor<64x64x3x3xf32>
  %w_taps = graph.transpose %w {perm = [2, 3, 0, 1]} : tensor<3x3x64x64xf32>
  %rows = graph.reshape %w_taps {shape = [576, 64]} : tensor<576x64xf32>
  %pixels = graph.reshape %x {shape = [64, 784]} : tensor<64x784xf32>
  %product = graph.matmul %rows, %pixels : tensor<576x784xf32>
  %t = graph.reshape %product {shape = [576, 28, 28]} : tensor<576x28x28xf32>
  %sum = algebra.scope (n: 1, f: 64, h: 28, w: 28) sum (r: 3, s: 3)
         %t[192 * r + 64 * s + f, h + r - 1, w + s - 1] : tensor<1x64x28x28xf32>
  %b3 = graph.weight @b3 : tensor<64xf32>
  %b1 = graph.weight @b1 : tensor<64xf32>
  %bias = graph.add %b3, %b1 : tensor<64xf32>
  %5 = graph.broadcast %bias {shape = [1, 64, 28, 28], dims = [1]} : tensor<1x64x28x28xf32>
  %6 = graph.add %sum, %5 : tensor<1x64x28x28xf32>
  %y = graph.relu %6 : tensor<1x64x28x28xf32>
  func.return %y : tensor<1x64x28x28xf32>
}
