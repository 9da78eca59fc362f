builtin.module {
  func.func @main(%x: tensor<96x256xf32> {isoform.name = "x"}) -> (tensor<96x256xf32> {isoform.name = "y"}) {
    %w1 = graph.weight @w1 : tensor<256x1024xf32>
    %0 = graph.matmul %x, %w1 : tensor<96x1024xf32>
    %b1 = graph.weight @b1 : tensor<1024xf32>
    %1 = graph.broadcast %b1 {shape = [96, 1024], dims = [1]} : tensor<96x1024xf32>
    %2 = graph.add %0, %1 : tensor<96x1024xf32>
    %w2 = graph.weight @w2 : tensor<1024x256xf32>
    %3 = graph.matmul %2, %w2 : tensor<96x256xf32>
    %b2 = graph.weight @b2 : tensor<256xf32>
    %4 = graph.broadcast %b2 {shape = [96, 256], dims = [1]} : tensor<96x256xf32>
    %5 = graph.add %3, %4 : tensor<96x256xf32>
    func.return %5 : tensor<96x256xf32>
  }
}
