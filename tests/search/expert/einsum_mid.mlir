// A batch of products, and a transpose that readers can look through.
builtin.module {
  func.func @main(%a: tensor<6x50x40xf32> {isoform.name = "a"}, %c: tensor<6x50x30xf32> {isoform.name = "c"}) -> (tensor<40x6x30xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %c {transpose_a = true} : tensor<6x40x30xf32>
    %1 = graph.transpose %0 {perm = [1, 0, 2]} : tensor<40x6x30xf32>
    func.return %1 : tensor<40x6x30xf32>
  }
}
