// One convolution; the inner bias goes through the sums of the outer taps.
builtin.module {
  func.func @main(%x: tensor<2x32x80xf32> {isoform.name = "x"}) -> (tensor<2x32x78xf32> {isoform.name = "y"}) {
    %w2 = graph.weight @w2 : tensor<32x128x3xf32>
    %w1 = graph.weight @w1 : tensor<128x32x1xf32>
    %0 = graph.reshape %w1 {shape = [128, 32]} : tensor<128x32xf32>
    %1 = graph.transpose %0 {perm = [1, 0]} : tensor<32x128xf32>
    %2 = graph.reshape %1 {shape = [32, 128, 1]} : tensor<32x128x1xf32>
    %3 = graph.conv %w2, %2 {strides = [1], pads = [0, 0], dilations = [1]} : tensor<32x32x3xf32>
    %b2 = graph.weight @b2 : tensor<32xf32>
    %4 = graph.reduce_sum %w2 {axes = [2], keep_dims = false} : tensor<32x128xf32>
    %5 = graph.reshape %4 {shape = [32, 128]} : tensor<32x128xf32>
    %b1 = graph.weight @b1 : tensor<128xf32>
    %6 = graph.reshape %b1 {shape = [128, 1]} : tensor<128x1xf32>
    %7 = graph.matmul %5, %6 : tensor<32x1xf32>
    %8 = graph.reshape %7 {shape = [32]} : tensor<32xf32>
    %9 = graph.add %b2, %8 : tensor<32xf32>
    %10 = graph.conv %x, %3, %9 {strides = [1], pads = [0, 0], dilations = [1]} : tensor<2x32x78xf32>
    func.return %10 : tensor<2x32x78xf32>
  }
}
