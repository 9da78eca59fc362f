// One product for all taps of both kernels, then each result adds its own taps where they belong.
func.func @main(%x: tensor<1x256x64xf32> {isoform.name = "x"}) -> (tensor<1x256x64xf32> {isoform.name = "p"}, tensor<1x256x64xf32> {isoform.name = "q"}) {
  %wa = graph.weight @wa : tensor<256x256x3xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 0, 1]} : tensor<3x256x256xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [768, 256]} : tensor<768x256xf32>
  %wb = graph.weight @wb : tensor<256x256x1xf32>
  %wb_rows = graph.reshape %wb {shape = [256, 256]} : tensor<256x256xf32>
  %rows = graph.concat %wa_rows, %wb_rows {axis = 0} : tensor<1024x256xf32>
  %pixels = graph.reshape %x {shape = [256, 64]} : tensor<256x64xf32>
  %product = graph.matmul %rows, %pixels : tensor<1024x64xf32>
  %t = graph.reshape %product {shape = [1024, 64]} : tensor<1024x64xf32>
  %p = algebra.scope (n: 1, f: 256, l: 64) sum (r: 3)
         %t[256 * r + f, l + r - 1] : tensor<1x256x64xf32>
  %q = algebra.scope (n: 1, f: 256, l: 64)
         %t[f + 768, l] : tensor<1x256x64xf32>
  func.return %p, %q : tensor<1x256x64xf32>, tensor<1x256x64xf32>
}
