builtin.module {
  func.func @main(%x: tensor<1x128x90xf32> {isoform.name = "x"}) -> (tensor<1x128x90xf32> {isoform.name = "y"}) {
    %w0 = graph.weight @w0 : tensor<32x128x1xf32>
    %0 = graph.conv %x, %w0 {strides = [1], pads = [0, 0], dilations = [1]} : tensor<1x32x90xf32>
    %1 = graph.relu %0 : tensor<1x32x90xf32>
    %w2 = graph.weight @w2 : tensor<32x128x3xf32>
    %2 = graph.conv %x, %w2 {strides = [1], pads = [2, 2], dilations = [2]} : tensor<1x32x90xf32>
    %3 = graph.relu %2 : tensor<1x32x90xf32>
    %w4 = graph.weight @w4 : tensor<32x128x3xf32>
    %4 = graph.conv %x, %w4 {strides = [1], pads = [4, 4], dilations = [4]} : tensor<1x32x90xf32>
    %5 = graph.relu %4 : tensor<1x32x90xf32>
    %w8 = graph.weight @w8 : tensor<32x128x3xf32>
    %6 = graph.conv %x, %w8 {strides = [1], pads = [8, 8], dilations = [8]} : tensor<1x32x90xf32>
    %7 = graph.relu %6 : tensor<1x32x90xf32>
    %8 = graph.concat %1, %3, %5, %7 {axis = 1} : tensor<1x128x90xf32>
    func.return %8 : tensor<1x128x90xf32>
  }
}
