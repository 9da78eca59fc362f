// The inner weights go into the outer one.
builtin.module {
  func.func @main(%x: tensor<1x64x18x18xf32> {isoform.name = "x"}, %z: tensor<1x48x18x18xf32> {isoform.name = "z"}) -> (tensor<1x32x18x18xf32> {isoform.name = "y"}) {
    %w = graph.weight @w : tensor<32x224x1x1xf32>
    %0 = graph.reshape %w {shape = [32, 224]} : tensor<32x224xf32>
    %1, %2 = graph.split %0 {axis = 1, sizes = [128, 96]} : tensor<32x128xf32>, tensor<32x96xf32>
    %a = graph.weight @a : tensor<128x64x1x1xf32>
    %3 = graph.reshape %a {shape = [128, 64]} : tensor<128x64xf32>
    %4 = graph.matmul %1, %3 : tensor<32x64xf32>
    %c = graph.weight @c : tensor<96x48x1x1xf32>
    %5 = graph.reshape %c {shape = [96, 48]} : tensor<96x48xf32>
    %6 = graph.matmul %2, %5 : tensor<32x48xf32>
    %7 = graph.concat %x, %z {axis = 1} : tensor<1x112x18x18xf32>
    %8 = graph.concat %4, %6 {axis = 1} : tensor<32x112xf32>
    %9 = graph.reshape %8 {shape = [32, 112, 1, 1]} : tensor<32x112x1x1xf32>
    %10 = graph.conv %7, %9 {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x32x18x18xf32>
    func.return %10 : tensor<1x32x18x18xf32>
  }
}
