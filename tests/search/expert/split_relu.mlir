// A function of all parts is a function of the whole.
builtin.module {
  func.func @main(%x: tensor<8x96x10xf32> {isoform.name = "x"}) -> (tensor<8x96x10xf32> {isoform.name = "y"}) {
    %0 = graph.relu %x : tensor<8x96x10xf32>
    func.return %0 : tensor<8x96x10xf32>
  }
}
