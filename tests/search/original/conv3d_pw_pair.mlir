builtin.module {
  func.func @main(%x: tensor<1x24x6x12x12xf32> {isoform.name = "x"}) -> (tensor<1x16x6x12x12xf32> {isoform.name = "p"}, tensor<1x40x6x12x12xf32> {isoform.name = "q"}) {
    %wp = graph.weight @wp : tensor<16x24x1x1x1xf32>
    %cp = graph.weight @cp : tensor<16xf32>
    %0 = graph.conv %x, %wp, %cp {strides = [1, 1, 1], pads = [0, 0, 0, 0, 0, 0], dilations = [1, 1, 1]} : tensor<1x16x6x12x12xf32>
    %1 = graph.sigmoid %0 : tensor<1x16x6x12x12xf32>
    %wq = graph.weight @wq : tensor<40x24x1x1x1xf32>
    %cq = graph.weight @cq : tensor<40xf32>
    %2 = graph.conv %x, %wq, %cq {strides = [1, 1, 1], pads = [0, 0, 0, 0, 0, 0], dilations = [1, 1, 1]} : tensor<1x40x6x12x12xf32>
    %3 = graph.sigmoid %2 : tensor<1x40x6x12x12xf32>
    func.return %1, %3 : tensor<1x16x6x12x12xf32>, tensor<1x40x6x12x12xf32>
  }
}
