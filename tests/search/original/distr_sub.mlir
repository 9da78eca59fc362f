builtin.module {
  func.func @main(%a: tensor<256x512xf32> {isoform.name = "a"}, %b: tensor<512x256xf32> {isoform.name = "b"}, %c: tensor<512x256xf32> {isoform.name = "c"}) -> (tensor<256x256xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %b : tensor<256x256xf32>
    %1 = graph.matmul %a, %c : tensor<256x256xf32>
    %2 = graph.sub %0, %1 : tensor<256x256xf32>
    func.return %2 : tensor<256x256xf32>
  }
}
