// A weighted sum of rows is a product: s' (x w) = (s' x) w.
builtin.module {
  func.func @main(%x: tensor<90x64xf32> {isoform.name = "x"}, %s: tensor<90x1xf32> {isoform.name = "s"}) -> (tensor<1x110xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %s, %x {transpose_a = true} : tensor<1x64xf32>
    %w = graph.weight @w : tensor<64x110xf32>
    %1 = graph.matmul %0, %w : tensor<1x110xf32>
    func.return %1 : tensor<1x110xf32>
  }
}
