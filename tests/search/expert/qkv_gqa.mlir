// One product with the weights stacked, of unequal widths; its columns are the three results.
func.func @main(%x: tensor<33x256xf32> {isoform.name = "x"}) -> (tensor<33x256xf32> {isoform.name = "q"}, tensor<33x64xf32> {isoform.name = "k"}, tensor<33x64xf32> {isoform.name = "v"}) {
  %wq = graph.weight @wq : tensor<256x256xf32>
  %wk = graph.weight @wk : tensor<64x256xf32>
  %wv = graph.weight @wv : tensor<64x256xf32>
  %w = graph.concat %wq, %wk, %wv {axis = 0} : tensor<384x256xf32>
  %y = graph.matmul %x, %w {transpose_b = true} : tensor<33x384xf32>
  %q, %k, %v = graph.split %y {axis = 1, sizes = [256, 64, 64]} : tensor<33x256xf32>, tensor<33x64xf32>, tensor<33x64xf32>
  func.return %q, %k, %v : tensor<33x256xf32>, tensor<33x64xf32>, tensor<33x64xf32>
}
