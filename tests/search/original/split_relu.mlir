builtin.module {
  func.func @main(%x: tensor<8x96x10xf32> {isoform.name = "x"}) -> (tensor<8x96x10xf32> {isoform.name = "y"}) {
    %0, %1, %2 = graph.split %x {axis = 1, sizes = [32, 32, 32]} : tensor<8x32x10xf32>, tensor<8x32x10xf32>, tensor<8x32x10xf32>
    %3 = graph.relu %0 : tensor<8x32x10xf32>
    %4 = graph.relu %1 : tensor<8x32x10xf32>
    %5 = graph.relu %2 : tensor<8x32x10xf32>
    %6 = graph.concat %3, %4, %5 {axis = 1} : tensor<8x96x10xf32>
    func.return %6 : tensor<8x96x10xf32>
  }
}
