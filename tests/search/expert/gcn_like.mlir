// One product for all taps of both kernels, then each result adds its own taps where they belong.
func.func @main(%x: tensor<1x256x16x16xf32> {isoform.name = "x"}) -> (tensor<1x64x16x16xf32> {isoform.name = "p"}, tensor<1x64x16x16xf32> {isoform.name = "q"}) {
  %wa = graph.weight @wa : tensor<64x256x1x7xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 3, 0, 1]} : tensor<1x7x64x256xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [448, 256]} : tensor<448x256xf32>
  %wb = graph.weight @wb : tensor<64x256x7x1xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 3, 0, 1]} : tensor<7x1x64x256xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [448, 256]} : tensor<448x256xf32>
  %rows = graph.concat %wa_rows, %wb_rows {axis = 0} : tensor<896x256xf32>
  %pixels = graph.reshape %x {shape = [256, 256]} : tensor<256x256xf32>
  %product = graph.matmul %rows, %pixels : tensor<896x256xf32>
  %t = graph.reshape %product {shape = [896, 16, 16]} : tensor<896x16x16xf32>
  %p = algebra.scope (n: 1, f: 64, h: 16, w: 16) sum (s: 7)
         %t[64 * s + f, h, w + s - 3] : tensor<1x64x16x16xf32>
  %q = algebra.scope (n: 1, f: 64, h: 16, w: 16) sum (r: 7)
         %t[64 * r + f + 448, h + r - 3, w] : tensor<1x64x16x16xf32>
  func.return %p, %q : tensor<1x64x16x16xf32>, tensor<1x64x16x16xf32>
}
