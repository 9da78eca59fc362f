// One transposed convolution of both kernels; its parts are the results.
builtin.module {
  func.func @main(%x: tensor<1x64x10x10xf32> {isoform.name = "x"}) -> (tensor<1x32x20x20xf32> {isoform.name = "p"}, tensor<1x48x20x20xf32> {isoform.name = "q"}) {
    %wp = graph.weight @wp : tensor<64x32x2x2xf32>
    %wq = graph.weight @wq : tensor<64x48x2x2xf32>
    %0 = graph.concat %wp, %wq {axis = 1} : tensor<64x80x2x2xf32>
    %1 = graph.conv_transpose %x, %0 {strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], output_padding = [0, 0]} : tensor<1x80x20x20xf32>
    %2, %3 = graph.split %1 {axis = 1, sizes = [32, 48]} : tensor<1x32x20x20xf32>, tensor<1x48x20x20xf32>
    func.return %2, %3 : tensor<1x32x20x20xf32>, tensor<1x48x20x20xf32>
  }
}
