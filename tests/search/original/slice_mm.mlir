builtin.module {
  func.func @main(%a: tensor<256x512xf32> {isoform.name = "a"}, %c: tensor<512x512xf32> {isoform.name = "c"}) -> (tensor<256x8xf32> {isoform.name = "y"}) {
    %0 = graph.matmul %a, %c : tensor<256x512xf32>
    %1 = graph.slice %0 {starts = [0, 0], sizes = [256, 8], steps = [1, 1]} : tensor<256x8xf32>
    func.return %1 : tensor<256x8xf32>
  }
}
