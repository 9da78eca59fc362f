// Both gates are one product; the activation reads its halves.
func.func @main(%x: tensor<33x256xf32> {isoform.name = "x"}) -> (tensor<33x256xf32> {isoform.name = "y"}) {
  %wu = graph.weight @wu : tensor<256x512xf32>
  %wv = graph.weight @wv : tensor<256x512xf32>
  %w = graph.concat %wu, %wv {axis = 1} : tensor<256x1024xf32>
  %uv = graph.matmul %x, %w : tensor<33x1024xf32>
  %u, %v = graph.split %uv {axis = 1, sizes = [512, 512]} : tensor<33x512xf32>, tensor<33x512xf32>
  %0 = graph.sigmoid %u : tensor<33x512xf32>
  %1 = graph.mul %u, %0 : tensor<33x512xf32>
  %gated = graph.mul %1, %v : tensor<33x512xf32>
  %wo = graph.weight @wo : tensor<512x256xf32>
  %y = graph.matmul %gated, %wo : tensor<33x256xf32>
  func.return %y : tensor<33x256xf32>
}
