// The weight's rows change places, not the columns: once, when it is packed.
builtin.module {
  func.func @main(%x: tensor<64x96xf32> {isoform.name = "x"}) -> (tensor<64x80xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<96x80xf32>
    %0 = graph.slice %w {starts = [64, 0], sizes = [32, 80], steps = [1, 1]} : tensor<32x80xf32>
    %1 = graph.slice %w {starts = [0, 0], sizes = [64, 80], steps = [1, 1]} : tensor<64x80xf32>
    %2 = graph.concat %0, %1 {axis = 0} : tensor<96x80xf32>
    %3 = graph.matmul %x, %2 : tensor<64x80xf32>
    func.return %3 : tensor<64x80xf32>
  }
}
