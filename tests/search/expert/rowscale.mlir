// A scale of rows commutes with the product, and its result is narrower.
builtin.module {
  func.func @main(%a: tensor<256x1024xf32> {isoform.name = "a"}, %s: tensor<256x1xf32> {isoform.name = "s"}) -> (tensor<256x32xf32> {isoform.name = "y"}) {
    %0 = graph.broadcast %s {shape = [256, 32], dims = [0, 1]} : tensor<256x32xf32>
    %w = graph.weight @w : tensor<1024x32xf32>
    %1 = graph.matmul %a, %w : tensor<256x32xf32>
    %2 = graph.mul %1, %0 : tensor<256x32xf32>
    func.return %2 : tensor<256x32xf32>
  }
}
