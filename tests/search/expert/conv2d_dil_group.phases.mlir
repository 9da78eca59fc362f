// Each group alone is a plain convolution, and the four phases of its input are four images without
// dilation: Winograd's algorithm takes them.
func.func @main(%x: tensor<1x256x16x16xf32> {isoform.name = "x"}) -> (tensor<1x256x16x16xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<256x64x3x3xf32>
  %w0 = graph.slice %w {starts = [0, 0, 0, 0], sizes = [64, 64, 3, 3], steps = [1, 1, 1, 1]} : tensor<64x64x3x3xf32>
  %phases0 = algebra.scope (n: 4, c: 64, h: 10, w: 10)
         %x[0, c, 2 * h + n floordiv 2 - 2, 2 * w + n mod 2 - 2] : tensor<4x64x10x10xf32>
  %plain0 = graph.conv %phases0, %w0 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<4x64x8x8xf32>
  %w1 = graph.slice %w {starts = [64, 0, 0, 0], sizes = [64, 64, 3, 3], steps = [1, 1, 1, 1]} : tensor<64x64x3x3xf32>
  %phases1 = algebra.scope (n: 4, c: 64, h: 10, w: 10)
         %x[0, c + 64, 2 * h + n floordiv 2 - 2, 2 * w + n mod 2 - 2] : tensor<4x64x10x10xf32>
  %plain1 = graph.conv %phases1, %w1 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<4x64x8x8xf32>
  %w2 = graph.slice %w {starts = [128, 0, 0, 0], sizes = [64, 64, 3, 3], steps = [1, 1, 1, 1]} : tensor<64x64x3x3xf32>
  %phases2 = algebra.scope (n: 4, c: 64, h: 10, w: 10)
         %x[0, c + 128, 2 * h + n floordiv 2 - 2, 2 * w + n mod 2 - 2] : tensor<4x64x10x10xf32>
  %plain2 = graph.conv %phases2, %w2 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<4x64x8x8xf32>
  %w3 = graph.slice %w {starts = [192, 0, 0, 0], sizes = [64, 64, 3, 3], steps = [1, 1, 1, 1]} : tensor<64x64x3x3xf32>
  %phases3 = algebra.scope (n: 4, c: 64, h: 10, w: 10)
         %x[0, c + 192, 2 * h + n floordiv 2 - 2, 2 * w + n mod 2 - 2] : tensor<4x64x10x10xf32>
  %plain3 = graph.conv %phases3, %w3 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<4x64x8x8xf32>
  %plain = graph.concat %plain0, %plain1, %plain2, %plain3 {axis = 1} : tensor<4x256x8x8xf32>
  %y = algebra.scope (n: 1, f: 256, h: 16, w: 16)
         %plain[2 * (h mod 2) + w mod 2, f, h floordiv 2, w floordiv 2] : tensor<1x256x16x16xf32>
  func.return %y : tensor<1x256x16x16xf32>
}
