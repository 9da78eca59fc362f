builtin.module {
  func.func @main(%x: tensor<50x32xf32> {isoform.name = "x"}) -> (tensor<50x40xf32> {isoform.name = "y"}) {
    %0 = graph.concat %x, %x, %x, %x {axis = 1} : tensor<50x128xf32>
    %w = graph.weight @w : tensor<128x40xf32>
    %1 = graph.matmul %0, %w : tensor<50x40xf32>
    func.return %1 : tensor<50x40xf32>
  }
}
