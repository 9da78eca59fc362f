// Pointwise convolutions of one volume are one.
builtin.module {
  func.func @main(%x: tensor<1x24x6x12x12xf32> {isoform.name = "x"}) -> (tensor<1x16x6x12x12xf32> {isoform.name = "p"}, tensor<1x40x6x12x12xf32> {isoform.name = "q"}) {
    %wp = graph.weight @wp : tensor<16x24x1x1x1xf32>
    %wq = graph.weight @wq : tensor<40x24x1x1x1xf32>
    %0 = graph.concat %wp, %wq {axis = 0} : tensor<56x24x1x1x1xf32>
    %cp = graph.weight @cp : tensor<16xf32>
    %cq = graph.weight @cq : tensor<40xf32>
    %1 = graph.concat %cp, %cq {axis = 0} : tensor<56xf32>
    %2 = graph.conv %x, %0, %1 {strides = [1, 1, 1], pads = [0, 0, 0, 0, 0, 0], dilations = [1, 1, 1]} : tensor<1x56x6x12x12xf32>
    %3 = graph.sigmoid %2 : tensor<1x56x6x12x12xf32>
    %4, %5 = graph.split %3 {axis = 1, sizes = [16, 40]} : tensor<1x16x6x12x12xf32>, tensor<1x40x6x12x12xf32>
    func.return %4, %5 : tensor<1x16x6x12x12xf32>, tensor<1x40x6x12x12xf32>
  }
}
