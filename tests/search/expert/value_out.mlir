// The weights of values and of the output are one.
builtin.module {
  func.func @main(%x: tensor<64x96xf32> {isoform.name = "x"}, %s: tensor<64x64xf32> {isoform.name = "s"}) -> (tensor<64x96xf32> {isoform.name = "y"}) {
    %0 = graph.softmax %s {axis = 1} : tensor<64x64xf32>
    %wv = graph.weight @wv : tensor<96x384xf32>
    %wo = graph.weight @wo : tensor<384x96xf32>
    %1 = graph.matmul %wv, %wo : tensor<96x96xf32>
    %2 = graph.matmul %x, %1 : tensor<64x96xf32>
    %3 = graph.matmul %0, %2 : tensor<64x96xf32>
    func.return %3 : tensor<64x96xf32>
  }
}
