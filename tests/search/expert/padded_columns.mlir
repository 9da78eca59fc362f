// Rows of the weight that meet zeros are left out.
builtin.module {
  func.func @main(%x: tensor<64x200xf32> {isoform.name = "x"}) -> (tensor<64x128xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<256x128xf32>
    %0 = graph.slice %w {starts = [0, 0], sizes = [200, 128], steps = [1, 1]} : tensor<200x128xf32>
    %1 = graph.matmul %x, %0 : tensor<64x128xf32>
    func.return %1 : tensor<64x128xf32>
  }
}
