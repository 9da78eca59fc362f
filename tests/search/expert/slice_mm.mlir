// Only 8 of the 512 columns are computed.
func.func @main(%a: tensor<256x512xf32> {isoform.name = "a"}, %c: tensor<512x512xf32> {isoform.name = "c"}) -> (tensor<256x8xf32> {isoform.name = "y"}) {
  %columns = graph.slice %c {starts = [0, 0], sizes = [512, 8], steps = [1, 1]} : tensor<512x8xf32>
  %y = graph.matmul %a, %columns : tensor<256x8xf32>
  func.return %y : tensor<256x8xf32>
}
