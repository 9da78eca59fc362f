builtin.module {
  func.func @main(%s0: tensor<40x40xf32> {isoform.name = "s0"}, %v0: tensor<40x32xf32> {isoform.name = "v0"}, %s1: tensor<40x40xf32> {isoform.name = "s1"}, %v1: tensor<40x32xf32> {isoform.name = "v1"}, %s2: tensor<40x40xf32> {isoform.name = "s2"}, %v2: tensor<40x32xf32> {isoform.name = "v2"}) -> (tensor<40x72xf32> {isoform.name = "y"}) {
    %0 = graph.softmax %s0 {axis = 1} : tensor<40x40xf32>
    %1 = graph.matmul %0, %v0 : tensor<40x32xf32>
    %w0 = graph.weight @w0 : tensor<32x72xf32>
    %2 = graph.matmul %1, %w0 : tensor<40x72xf32>
    %3 = graph.softmax %s1 {axis = 1} : tensor<40x40xf32>
    %4 = graph.matmul %3, %v1 : tensor<40x32xf32>
    %w1 = graph.weight @w1 : tensor<32x72xf32>
    %5 = graph.matmul %4, %w1 : tensor<40x72xf32>
    %6 = graph.softmax %s2 {axis = 1} : tensor<40x40xf32>
    %7 = graph.matmul %6, %v2 : tensor<40x32xf32>
    %w2 = graph.weight @w2 : tensor<32x72xf32>
    %8 = graph.matmul %7, %w2 : tensor<40x72xf32>
    %9 = graph.add %2, %5 : tensor<40x72xf32>
    %10 = graph.add %9, %8 : tensor<40x72xf32>
    func.return %10 : tensor<40x72xf32>
  }
}
