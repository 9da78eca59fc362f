// Three of eight heads are read: columns of the weight.
builtin.module {
  func.func @main(%x: tensor<40x64xf32> {isoform.name = "x"}) -> (tensor<3x40x16xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x128xf32>
    %0 = graph.slice %w {starts = [0, 0], sizes = [64, 48], steps = [1, 1]} : tensor<64x48xf32>
    %1 = graph.matmul %x, %0 : tensor<40x48xf32>
    %2 = graph.reshape %1 {shape = [40, 3, 16]} : tensor<40x3x16xf32>
    %3 = graph.transpose %2 {perm = [1, 0, 2]} : tensor<3x40x16xf32>
    func.return %3 : tensor<3x40x16xf32>
  }
}
