builtin.module {
  func.func @main(%x: tensor<60x192xf32> {isoform.name = "x"}) -> (tensor<60x160xf32> {isoform.name = "y"}) {
    %0 = graph.slice %x {starts = [0, 0], sizes = [60, 48], steps = [1, 1]} : tensor<60x48xf32>
    %w0 = graph.weight @w0 : tensor<48x40xf32>
    %1 = graph.matmul %0, %w0 : tensor<60x40xf32>
    %2 = graph.slice %x {starts = [0, 48], sizes = [60, 48], steps = [1, 1]} : tensor<60x48xf32>
    %w1 = graph.weight @w1 : tensor<48x40xf32>
    %3 = graph.matmul %2, %w1 : tensor<60x40xf32>
    %4 = graph.slice %x {starts = [0, 96], sizes = [60, 48], steps = [1, 1]} : tensor<60x48xf32>
    %w2 = graph.weight @w2 : tensor<48x40xf32>
    %5 = graph.matmul %4, %w2 : tensor<60x40xf32>
    %6 = graph.slice %x {starts = [0, 144], sizes = [60, 48], steps = [1, 1]} : tensor<60x48xf32>
    %w3 = graph.weight @w3 : tensor<48x40xf32>
    %7 = graph.matmul %6, %w3 : tensor<60x40xf32>
    %8 = graph.concat %1, %3, %5, %7 {axis = 1} : tensor<60x160xf32>
    func.return %8 : tensor<60x160xf32>
  }
}
