builtin.module {
  func.func @main(%a: tensor<64x256xf32> {isoform.name = "a"}) -> (tensor<64x256xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<256x256xf32>
    %0 = graph.matmul %a, %w : tensor<64x256xf32>
    %1 = graph.neg %0 : tensor<64x256xf32>
    %v = graph.weight @v : tensor<256x256xf32>
    %2 = graph.matmul %a, %v : tensor<64x256xf32>
    %3 = graph.neg %2 : tensor<64x256xf32>
    %4 = graph.sub %1, %3 : tensor<64x256xf32>
    func.return %4 : tensor<64x256xf32>
  }
}
