// -AW - -AV is A(V - W), and V - W is a weight.
builtin.module {
  func.func @main(%a: tensor<64x256xf32> {isoform.name = "a"}) -> (tensor<64x256xf32> {isoform.name = "y"}) {
    %v = graph.weight @v : tensor<256x256xf32>
    %w = graph.weight @w : tensor<256x256xf32>
    %0 = graph.sub %v, %w : tensor<256x256xf32>
    %1 = graph.matmul %a, %0 : tensor<64x256xf32>
    func.return %1 : tensor<64x256xf32>
  }
}
