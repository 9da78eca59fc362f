// One product for all taps of both kernels, then each result adds its own taps where they belong.
func.func @main(%x: tensor<1x256x64xf32> {isoform.name = "x"}) -> (tensor<1x256x64xf32> {isoform.name = "a"}, tensor<1x256x64xf32> {isoform.name = "b"}) {
  %wa = graph.weight @wa : tensor<256x256x3xf32>
  %wa_taps = graph.transpose %wa {perm = [2, 0, 1]} : tensor<3x256x256xf32>
  %wa_rows = graph.reshape %wa_taps {shape = [768, 256]} : tensor<768x256xf32>
  %wb = graph.weight @wb : tensor<256x256x5xf32>
  %wb_taps = graph.transpose %wb {perm = [2, 0, 1]} : tensor<5x256x256xf32>
  %wb_rows = graph.reshape %wb_taps {shape = [1280, 256]} : tensor<1280x256xf32>
  %rows = graph.concat %wa_rows, %wb_rows {axis = 0} : tensor<2048x256xf32>
  %pixels = graph.reshape %x {shape = [256, 64]} : tensor<256x64xf32>
  %product = graph.matmul %rows, %pixels : tensor<2048x64xf32>
  %t = graph.reshape %product {shape = [2048, 64]} : tensor<2048x64xf32>
  %a = algebra.scope (n: 1, f: 256, l: 64) sum (r: 3)
         %t[256 * r + f, l + r - 1] : tensor<1x256x64xf32>
  %b = algebra.scope (n: 1, f: 256, l: 64) sum (r: 5)
         %t[256 * r + f + 768, l + r - 2] : tensor<1x256x64xf32>
  func.return %a, %b : tensor<1x256x64xf32>, tensor<1x256x64xf32>
}
