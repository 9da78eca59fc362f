builtin.module {
  func.func @main(%x: tensor<3x50x40xf32> {isoform.name = "x"}) -> (tensor<3x50x64xf32> {isoform.name = "y"}) {
    %0 = graph.transpose %x {perm = [0, 2, 1]} : tensor<3x40x50xf32>
    %w = graph.weight @w : tensor<64x40xf32>
    %c = graph.weight @c : tensor<64xf32>
    %1 = graph.broadcast %w {shape = [3, 64, 40], dims = [1, 2]} : tensor<3x64x40xf32>
    %2 = graph.matmul %1, %0 : tensor<3x64x50xf32>
    %3 = graph.broadcast %c {shape = [3, 64, 50], dims = [1]} : tensor<3x64x50xf32>
    %4 = graph.add %2, %3 : tensor<3x64x50xf32>
    %5 = graph.elu %4 : tensor<3x64x50xf32>
    %6 = graph.transpose %5 {perm = [0, 2, 1]} : tensor<3x50x64xf32>
    func.return %6 : tensor<3x50x64xf32>
  }
}
