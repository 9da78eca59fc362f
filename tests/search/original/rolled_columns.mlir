builtin.module {
  func.func @main(%x: tensor<64x96xf32> {isoform.name = "x"}) -> (tensor<64x80xf32> {isoform.name = "y"}) {
    %0 = graph.slice %x {starts = [0, 32], sizes = [64, 64], steps = [1, 1]} : tensor<64x64xf32>
    %1 = graph.slice %x {starts = [0, 0], sizes = [64, 32], steps = [1, 1]} : tensor<64x32xf32>
    %2 = graph.concat %0, %1 {axis = 1} : tensor<64x96xf32>
    %w = graph.weight @w : tensor<96x80xf32>
    %3 = graph.matmul %2, %w : tensor<64x80xf32>
    func.return %3 : tensor<64x80xf32>
  }
}
