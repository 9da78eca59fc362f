// The inner weight goes into the outer one's first rows.
builtin.module {
  func.func @main(%x: tensor<70x40xf32> {isoform.name = "x"}, %z: tensor<70x90xf32> {isoform.name = "z"}) -> (tensor<70x50xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<190x50xf32>
    %0, %1 = graph.split %w {axis = 0, sizes = [100, 90]} : tensor<100x50xf32>, tensor<90x50xf32>
    %2 = graph.concat %x, %z {axis = 1} : tensor<70x130xf32>
    %a = graph.weight @a : tensor<40x100xf32>
    %3 = graph.matmul %a, %0 : tensor<40x50xf32>
    %4 = graph.concat %3, %1 {axis = 0} : tensor<130x50xf32>
    %5 = graph.matmul %2, %4 : tensor<70x50xf32>
    func.return %5 : tensor<70x50xf32>
  }
}
