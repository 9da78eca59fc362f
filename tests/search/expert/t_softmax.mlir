// The transposes cancel around a softmax along another dim.
builtin.module {
  func.func @main(%x: tensor<4x8x64x48xf32> {isoform.name = "x"}) -> (tensor<4x8x64x48xf32> {isoform.name = "y"}) {
    %0 = graph.softmax %x {axis = 3} : tensor<4x8x64x48xf32>
    func.return %0 : tensor<4x8x64x48xf32>
  }
}
