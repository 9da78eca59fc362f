builtin.module {
  func.func @main(%x: tensor<1x32x16x16xf32> {isoform.name = "x"}, %z: tensor<1x32x16x16xf32> {isoform.name = "z"}) -> (tensor<1x64x16x16xf32> {isoform.name = "y"}) {
    %wx = graph.weight @wx : tensor<32x16x3x3xf32>
    %0 = graph.conv %x, %wx {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 2} : tensor<1x32x16x16xf32>
    %wz = graph.weight @wz : tensor<32x16x3x3xf32>
    %1 = graph.conv %z, %wz {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 2} : tensor<1x32x16x16xf32>
    %2 = graph.concat %0, %1 {axis = 1} : tensor<1x64x16x16xf32>
    func.return %2 : tensor<1x64x16x16xf32>
  }
}
