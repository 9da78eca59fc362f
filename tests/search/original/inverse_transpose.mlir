builtin.module {
  func.func @main(%x: tensor<4x16x16x8xf32> {isoform.name = "x"}) -> (tensor<4x16x16x8xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : tensor<4x8x16x16xf32>
    %1 = graph.relu %0 : tensor<4x8x16x16xf32>
    %2 = graph.transpose %1 {perm = [0, 2, 3, 1]} : tensor<4x16x16x8xf32>
    func.return %2 : tensor<4x16x16x8xf32>
  }
}
