// Products of one left side are one product with the right sides side by side.
builtin.module {
  func.func @main(%x: tensor<6x40x56xf32> {isoform.name = "x"}, %wp: tensor<6x56x24xf32> {isoform.name = "wp"}, %wq: tensor<6x56x48xf32> {isoform.name = "wq"}, %wr: tensor<6x56x16xf32> {isoform.name = "wr"}) -> (tensor<6x40x24xf32> {isoform.name = "p"}, tensor<6x40x48xf32> {isoform.name = "q"}, tensor<6x40x16xf32> {isoform.name = "r"}) {
    %0 = graph.concat %wp, %wq, %wr {axis = 2} : tensor<6x56x88xf32>
    %1 = graph.matmul %x, %0 : tensor<6x40x88xf32>
    %2, %3, %4 = graph.split %1 {axis = 2, sizes = [24, 48, 16]} : tensor<6x40x24xf32>, tensor<6x40x48xf32>, tensor<6x40x16xf32>
    func.return %2, %3, %4 : tensor<6x40x24xf32>, tensor<6x40x48xf32>, tensor<6x40x16xf32>
  }
}
