builtin.module {
  func.func @main(%x: tensor<6x40x56xf32> {isoform.name = "x"}, %wp: tensor<6x56x24xf32> {isoform.name = "wp"}, %wq: tensor<6x56x48xf32> {isoform.name = "wq"}, %wr: tensor<6x56x16xf32> {isoform.name = "wr"}) -> (tensor<6x40x24xf32> {isoform.name = "p"}, tensor<6x40x48xf32> {isoform.name = "q"}, tensor<6x40x16xf32> {isoform.name = "r"}) {
    %0 = graph.matmul %x, %wp : tensor<6x40x24xf32>
    %1 = graph.matmul %x, %wq : tensor<6x40x48xf32>
    %2 = graph.matmul %x, %wr : tensor<6x40x16xf32>
    func.return %0, %1, %2 : tensor<6x40x24xf32>, tensor<6x40x48xf32>, tensor<6x40x16xf32>
  }
}
