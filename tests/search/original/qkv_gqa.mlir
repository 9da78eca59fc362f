builtin.module {
  func.func @main(%x: tensor<33x256xf32> {isoform.name = "x"}) -> (tensor<33x256xf32> {isoform.name = "q"}, tensor<33x64xf32> {isoform.name = "k"}, tensor<33x64xf32> {isoform.name = "v"}) {
    %wq = graph.weight @wq : tensor<256x256xf32>
    %0 = graph.matmul %x, %wq {transpose_b = true} : tensor<33x256xf32>
    %wk = graph.weight @wk : tensor<64x256xf32>
    %1 = graph.matmul %x, %wk {transpose_b = true} : tensor<33x64xf32>
    %wv = graph.weight @wv : tensor<64x256xf32>
    %2 = graph.matmul %x, %wv {transpose_b = true} : tensor<33x64xf32>
    func.return %0, %1, %2 : tensor<33x256xf32>, tensor<33x64xf32>, tensor<33x64xf32>
  }
}
