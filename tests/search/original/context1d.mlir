builtin.module {
  func.func @main(%x: tensor<2x40x64xf32> {isoform.name = "x"}) -> (tensor<2x48x64xf32> {isoform.name = "y"}) {
    %0 = graph.reduce_max %x {axes = [2]} : tensor<2x40x1xf32>
    %1 = graph.broadcast %0 {shape = [2, 40, 64], dims = [0, 1, 2]} : tensor<2x40x64xf32>
    %w = graph.weight @w : tensor<48x80x1xf32>
    %c = graph.weight @c : tensor<48xf32>
    %2 = graph.concat %1, %x {axis = 1} : tensor<2x80x64xf32>
    %3 = graph.conv %2, %w, %c {strides = [1], pads = [0, 0], dilations = [1]} : tensor<2x48x64xf32>
    %4 = graph.relu %3 : tensor<2x48x64xf32>
    func.return %4 : tensor<2x48x64xf32>
  }
}
