builtin.module {
  func.func @main(%x: tensor<4x8x64x48xf32> {isoform.name = "x"}) -> (tensor<4x8x64x48xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %x {perm = [0, 2, 1, 3]} : tensor<4x64x8x48xf32>
    %1 = graph.softmax %0 {axis = 3} : tensor<4x64x8x48xf32>
    %2 = graph.transpose %1 {perm = [0, 2, 1, 3]} : tensor<4x8x64x48xf32>
    func.return %2 : tensor<4x8x64x48xf32>
  }
}
