builtin.module {
  func.func @main(%x: tensor<80x300xf32> {isoform.name = "x"}) -> (tensor<80x64xf32> {isoform.name = "y"}) {
    %0 = graph.slice %x {starts = [0, 0], sizes = [80, 100], steps = [1, 1]} : tensor<80x100xf32>
    %w0 = graph.weight @w0 : tensor<100x64xf32>
    %1 = graph.matmul %0, %w0 : tensor<80x64xf32>
    %2 = graph.slice %x {starts = [0, 100], sizes = [80, 100], steps = [1, 1]} : tensor<80x100xf32>
    %w1 = graph.weight @w1 : tensor<100x64xf32>
    %3 = graph.matmul %2, %w1 : tensor<80x64xf32>
    %4 = graph.add %1, %3 : tensor<80x64xf32>
    %5 = graph.slice %x {starts = [0, 200], sizes = [80, 100], steps = [1, 1]} : tensor<80x100xf32>
    %w2 = graph.weight @w2 : tensor<100x64xf32>
    %6 = graph.matmul %5, %w2 : tensor<80x64xf32>
    %7 = graph.add %4, %6 : tensor<80x64xf32>
    func.return %7 : tensor<80x64xf32>
  }
}
