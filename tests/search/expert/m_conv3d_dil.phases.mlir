// The eight phases of the input are eight plain images of one batch: no dilation is left.
func.func @main(%x: tensor<1x64x8x16x16xf32> {isoform.name = "x"}) -> (tensor<1x64x8x16x16xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<64x64x3x3x3xf32>
  %phases = algebra.scope (n: 8, c: 64, d: 6, h: 10, w: 10)
         %x[0, c, 2 * d + n floordiv 4 - 2, 2 * h + n floordiv 2 mod 2 - 2, 2 * w + n mod 2 - 2] : tensor<8x64x6x10x10xf32>
  %plain = graph.conv %phases, %w {strides = [1, 1, 1], pads = [0, 0, 0, 0, 0, 0], dilations = [1, 1, 1]} : tensor<8x64x4x8x8xf32>
  %y = algebra.scope (n: 1, f: 64, d: 8, h: 16, w: 16)
         %plain[4 * (d mod 2) + 2 * (h mod 2) + w mod 2, f, d floordiv 2, h floordiv 2, w floordiv 2] : tensor<1x64x8x16x16xf32>
  func.return %y : tensor<1x64x8x16x16xf32>
}
