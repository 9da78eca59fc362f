// A B - A C = A (B - C): half the multiplications.
func.func @main(%a: tensor<256x512xf32> {isoform.name = "a"}, %b: tensor<512x256xf32> {isoform.name = "b"}, %c: tensor<512x256xf32> {isoform.name = "c"}) -> (tensor<256x256xf32> {isoform.name = "y"}) {
  %difference = graph.sub %b, %c : tensor<512x256xf32>
  %y = graph.matmul %a, %difference : tensor<256x256xf32>
  func.return %y : tensor<256x256xf32>
}
