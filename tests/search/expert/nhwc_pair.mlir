// Channels are last already: one product of all pixels.
builtin.module {
  func.func @main(%x: tensor<1x15x21x48xf32> {isoform.name = "x"}) -> (tensor<1x15x21x32xf32> {isoform.name = "p"}, tensor<1x15x21x80xf32> {isoform.name = "q"}) {
    %0 = graph.reshape %x {shape = [315, 48]} : tensor<315x48xf32>
    %wp = graph.weight @wp : tensor<32x48x1x1xf32>
    %wq = graph.weight @wq : tensor<80x48x1x1xf32>
    %1 = graph.concat %wp, %wq {axis = 0} : tensor<112x48x1x1xf32>
    %2 = graph.reshape %1 {shape = [112, 48]} : tensor<112x48xf32>
    %3 = graph.matmul %0, %2 {transpose_b = true} : tensor<315x112xf32>
    %cp = graph.weight @cp : tensor<32xf32>
    %cq = graph.weight @cq : tensor<80xf32>
    %4 = graph.concat %cp, %cq {axis = 0} : tensor<112xf32>
    %5 = graph.broadcast %4 {shape = [315, 112], dims = [1]} : tensor<315x112xf32>
    %6 = graph.add %3, %5 : tensor<315x112xf32>
    %7 = graph.sigmoid %6 : tensor<315x112xf32>
    %8, %9 = graph.split %7 {axis = 1, sizes = [32, 80]} : tensor<315x32xf32>, tensor<315x80xf32>
    %10 = graph.reshape %8 {shape = [1, 15, 21, 32]} : tensor<1x15x21x32xf32>
    %11 = graph.reshape %9 {shape = [1, 15, 21, 80]} : tensor<1x15x21x80xf32>
    func.return %10, %11 : tensor<1x15x21x32xf32>, tensor<1x15x21x80xf32>
  }
}
