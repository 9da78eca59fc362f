// Two layers are one: the weights are multiplied, the first bias goes through the second weight.
builtin.module {
  func.func @main(%x: tensor<96x256xf32> {isoform.name = "x"}) -> (tensor<96x256xf32> {isoform.name = "y"}) {
    %w2 = graph.weight @w2 : tensor<1024x256xf32>
    %w1 = graph.weight @w1 : tensor<256x1024xf32>
    %0 = graph.matmul %w1, %w2 : tensor<256x256xf32>
    %b1 = graph.weight @b1 : tensor<1024xf32>
    %1 = graph.reshape %b1 {shape = [1, 1024]} : tensor<1x1024xf32>
    %2 = graph.matmul %1, %w2 : tensor<1x256xf32>
    %3 = graph.reshape %2 {shape = [256]} : tensor<256xf32>
    %b2 = graph.weight @b2 : tensor<256xf32>
    %4 = graph.add %3, %b2 : tensor<256xf32>
    %5 = graph.matmul %x, %0 : tensor<96x256xf32>
    %6 = graph.broadcast %4 {shape = [96, 256], dims = [1]} : tensor<96x256xf32>
    %7 = graph.add %5, %6 : tensor<96x256xf32>
    func.return %7 : tensor<96x256xf32>
  }
}
