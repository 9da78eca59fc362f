// A kernel as large as the image is a product.
builtin.module {
  func.func @main(%x: tensor<8x32x5x5xf32> {isoform.name = "x"}) -> (tensor<8x64x1x1xf32> {isoform.name = "y"}) {
    %0 = graph.reshape %x {shape = [8, 800]} : tensor<8x800xf32>
    %w = graph.weight @w : tensor<64x32x5x5xf32>
    %1 = graph.reshape %w {shape = [64, 800]} : tensor<64x800xf32>
    %2 = graph.matmul %0, %1 {transpose_b = true} : tensor<8x64xf32>
    %c = graph.weight @c : tensor<64xf32>
    %3 = graph.broadcast %c {shape = [8, 64], dims = [1]} : tensor<8x64xf32>
    %4 = graph.add %2, %3 : tensor<8x64xf32>
    %5 = graph.reshape %4 {shape = [8, 64, 1, 1]} : tensor<8x64x1x1xf32>
    func.return %5 : tensor<8x64x1x1xf32>
  }
}
