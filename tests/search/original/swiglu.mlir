builtin.module {
  func.func @main(%x: tensor<33x256xf32> {isoform.name = "x"}) -> (tensor<33x256xf32> {isoform.name = "y"}) {
    %wu = graph.weight @wu : tensor<256x512xf32>
    %0 = graph.matmul %x, %wu : tensor<33x512xf32>
    %wv = graph.weight @wv : tensor<256x512xf32>
    %1 = graph.matmul %x, %wv : tensor<33x512xf32>
    %2 = graph.sigmoid %0 : tensor<33x512xf32>
    %3 = graph.mul %0, %2 : tensor<33x512xf32>
    %4 = graph.mul %3, %1 : tensor<33x512xf32>
    %wo = graph.weight @wo : tensor<512x256xf32>
    %5 = graph.matmul %4, %wo : tensor<33x256xf32>
    func.return %5 : tensor<33x256xf32>
  }
}
