// One convolution with the filters of both, of unequal number; its channels are the two results.
func.func @main(%x: tensor<1x96x17x17xf32> {isoform.name = "x"}) -> (tensor<1x64x17x17xf32> {isoform.name = "p"}, tensor<1x40x17x17xf32> {isoform.name = "q"}) {
  %wa = graph.weight @wa : tensor<64x96x3x3xf32>
  %wb = graph.weight @wb : tensor<40x96x3x3xf32>
  %w = graph.concat %wa, %wb {axis = 0} : tensor<104x96x3x3xf32>
  %y = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x104x17x17xf32>
  %p, %q = graph.split %y {axis = 1, sizes = [64, 40]} : tensor<1x64x17x17xf32>, tensor<1x40x17x17xf32>
  func.return %p, %q : tensor<1x64x17x17xf32>, tensor<1x40x17x17xf32>
}
