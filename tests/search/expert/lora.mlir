// x W + (x A) B = x (W + A B): the sum in brackets is a weight.
func.func @main(%x: tensor<64x512xf32> {isoform.name = "x"}) -> (tensor<64x512xf32> {isoform.name = "y"}) {
  %w = graph.weight @w : tensor<512x512xf32>
  %a = graph.weight @a : tensor<512x16xf32>
  %b = graph.weight @b : tensor<16x512xf32>
  %low_rank = graph.matmul %a, %b : tensor<512x512xf32>
  %merged = graph.add %w, %low_rank : tensor<512x512xf32>
  %y = graph.matmul %x, %merged : tensor<64x512xf32>
  func.return %y : tensor<64x512xf32>
}
