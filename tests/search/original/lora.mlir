builtin.module {
  func.func @main(%x: tensor<64x512xf32> {isoform.name = "x"}) -> (tensor<64x512xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<512x512xf32>
    %0 = graph.matmul %x, %w : tensor<64x512xf32>
    %a = graph.weight @a : tensor<512x16xf32>
    %1 = graph.matmul %x, %a : tensor<64x16xf32>
    %b = graph.weight @b : tensor<16x512xf32>
    %2 = graph.matmul %1, %b : tensor<64x512xf32>
    %3 = graph.add %0, %2 : tensor<64x512xf32>
    func.return %3 : tensor<64x512xf32>
  }
}
