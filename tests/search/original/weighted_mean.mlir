builtin.module {
  func.func @main(%x: tensor<90x64xf32> {isoform.name = "x"}, %s: tensor<90x1xf32> {isoform.name = "s"}) -> (tensor<1x110xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<64x110xf32>
    %0 = graph.matmul %x, %w : tensor<90x110xf32>
    %1 = graph.broadcast %s {shape = [90, 110], dims = [0, 1]} : tensor<90x110xf32>
    %2 = graph.mul %0, %1 : tensor<90x110xf32>
    %3 = graph.reduce_sum %2 {axes = [0]} : tensor<1x110xf32>
    func.return %3 : tensor<1x110xf32>
  }
}
