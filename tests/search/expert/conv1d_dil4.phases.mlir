// The four phases of the input are four plain rows of one batch: no dilation is left.
func.func @main(%x: tensor<1x256x101xf32> {isoform.name = "x"}) -> (tensor<1x256x101xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<256x256x3xf32>
  %phases = algebra.scope (n: 4, c: 256, l: 28)
         %x[0, c, 4 * l + n - 4] : tensor<4x256x28xf32>
  %plain = graph.conv %phases, %w {strides = [1], pads = [0, 0], dilations = [1]} : tensor<4x256x26xf32>
  %y = algebra.scope (n: 1, f: 256, l: 101)
         %plain[l mod 4, f, l floordiv 4] : tensor<1x256x101xf32>
  func.return %y : tensor<1x256x101xf32>
}
