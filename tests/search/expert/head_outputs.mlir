// Outputs of heads side by side, their weights one above the other.
builtin.module {
  func.func @main(%s0: tensor<40x40xf32> {isoform.name = "s0"}, %v0: tensor<40x32xf32> {isoform.name = "v0"}, %s1: tensor<40x40xf32> {isoform.name = "s1"}, %v1: tensor<40x32xf32> {isoform.name = "v1"}, %s2: tensor<40x40xf32> {isoform.name = "s2"}, %v2: tensor<40x32xf32> {isoform.name = "v2"}) -> (tensor<40x72xf32> {isoform.name = "y"}) {
    %0 = graph.softmax %s0 {axis = 1} : tensor<40x40xf32>
    %1 = graph.matmul %0, %v0 : tensor<40x32xf32>
    %2 = graph.softmax %s1 {axis = 1} : tensor<40x40xf32>
    %3 = graph.matmul %2, %v1 : tensor<40x32xf32>
    %4 = graph.softmax %s2 {axis = 1} : tensor<40x40xf32>
    %5 = graph.matmul %4, %v2 : tensor<40x32xf32>
    %6 = graph.concat %1, %3, %5 {axis = 1} : tensor<40x96xf32>
    %w0 = graph.weight @w0 : tensor<32x72xf32>
    %w1 = graph.weight @w1 : tensor<32x72xf32>
    %w2 = graph.weight @w2 : tensor<32x72xf32>
    %7 = graph.concat %w0, %w1, %w2 {axis = 0} : tensor<96x72xf32>
    %8 = graph.matmul %6, %7 : tensor<40x72xf32>
    func.return %8 : tensor<40x72xf32>
  }
}
