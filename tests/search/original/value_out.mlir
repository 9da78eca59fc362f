builtin.module {
  func.func @main(%x: tensor<64x96xf32> {isoform.name = "x"}, %s: tensor<64x64xf32> {isoform.name = "s"}) -> (tensor<64x96xf32> {isoform.name = "y"}) {
    %wv = graph.weight @wv : tensor<96x384xf32>
    %0 = graph.matmul %x, %wv : tensor<64x384xf32>
    %1 = graph.softmax %s {axis = 1} : tensor<64x64xf32>
    %2 = graph.matmul %1, %0 : tensor<64x384xf32>
    %wo = graph.weight @wo : tensor<384x96xf32>
    %3 = graph.matmul %2, %wo : tensor<64x96xf32>
    func.return %3 : tensor<64x96xf32>
  }
}
