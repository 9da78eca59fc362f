// (s x) W = x (s W): the scale goes into the weight.
func.func @main(%x: tensor<64x512xf32> {isoform.name = "x"}) -> (tensor<64x512xf32> {isoform.name = "y"}) {
  %0 = graph.constant dense<1.250000e-01> : tensor<f32>
  %scale = graph.broadcast %0 {shape = [512, 512], dims = []} : tensor<512x512xf32>
  %w = graph.weight @w : tensor<512x512xf32>
  %scaled = graph.mul %w, %scale : tensor<512x512xf32>
  %y = graph.matmul %x, %scaled : tensor<64x512xf32>
  func.return %y : tensor<64x512xf32>
}
