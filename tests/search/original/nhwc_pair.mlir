builtin.module {
  func.func @main(%x: tensor<1x15x21x48xf32> {isoform.name = "x"}) -> (tensor<1x15x21x32xf32> {isoform.name = "p"}, tensor<1x15x21x80xf32> {isoform.name = "q"}) {
    %0 = graph.transpose %x {perm = [0, 3, 1, 2]} : tensor<1x48x15x21xf32>
    %wp = graph.weight @wp : tensor<32x48x1x1xf32>
    %cp = graph.weight @cp : tensor<32xf32>
    %1 = graph.conv %0, %wp, %cp {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x32x15x21xf32>
    %2 = graph.sigmoid %1 : tensor<1x32x15x21xf32>
    %3 = graph.transpose %2 {perm = [0, 2, 3, 1]} : tensor<1x15x21x32xf32>
    %wq = graph.weight @wq : tensor<80x48x1x1xf32>
    %cq = graph.weight @cq : tensor<80xf32>
    %4 = graph.conv %0, %wq, %cq {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x80x15x21xf32>
    %5 = graph.sigmoid %4 : tensor<1x80x15x21xf32>
    %6 = graph.transpose %5 {perm = [0, 2, 3, 1]} : tensor<1x15x21x80xf32>
    func.return %3, %6 : tensor<1x15x21x32xf32>, tensor<1x15x21x80xf32>
  }
}
