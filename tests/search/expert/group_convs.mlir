// Groups of two inputs are groups of one.
builtin.module {
  func.func @main(%x: tensor<1x32x16x16xf32> {isoform.name = "x"}, %z: tensor<1x32x16x16xf32> {isoform.name = "z"}) -> (tensor<1x64x16x16xf32> {isoform.name = "y"}) {
    %0 = graph.concat %x, %z {axis = 1} : tensor<1x64x16x16xf32>
    %wx = graph.weight @wx : tensor<32x16x3x3xf32>
    %wz = graph.weight @wz : tensor<32x16x3x3xf32>
    %1 = graph.concat %wx, %wz {axis = 0} : tensor<64x16x3x3xf32>
    %2 = graph.conv %0, %1 {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 4} : tensor<1x64x16x16xf32>
    func.return %2 : tensor<1x64x16x16xf32>
  }
}
