builtin.module {
  func.func @main(%x: tensor<40x64xf32> {isoform.name = "x"}) -> (tensor<3x40x16xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x128xf32>
    %0 = graph.matmul %x, %w : tensor<40x128xf32>
    %1 = graph.reshape %0 {shape = [40, 8, 16]} : tensor<40x8x16xf32>
    %2 = graph.transpose %1 {perm = [1, 0, 2]} : tensor<8x40x16xf32>
    %3 = graph.slice %2 {starts = [0, 0, 0], sizes = [3, 40, 16], steps = [1, 1, 1]} : tensor<3x40x16xf32>
    func.return %3 : tensor<3x40x16xf32>
  }
}
