// Both are 1x1 convolutions of one image, which are products of matrices as they stand. Side by
// side, as a grouped convolution, they would cost copies of both inputs.
func.func @main(%x1: tensor<1x96x17x17xf32> {isoform.name = "x1"}, %x2: tensor<1x96x17x17xf32> {isoform.name = "x2"}) -> (tensor<1x64x17x17xf32> {isoform.name = "p"}, tensor<1x40x17x17xf32> {isoform.name = "q"}) {
  %x1.pixels = graph.reshape %x1 {shape = [96, 289]} : tensor<96x289xf32>
  %wa = graph.weight @wa : tensor<64x96x1x1xf32>
  %wa.matrix = graph.reshape %wa {shape = [64, 96]} : tensor<64x96xf32>
  %p.pixels = graph.matmul %wa.matrix, %x1.pixels : tensor<64x289xf32>
  %p = graph.reshape %p.pixels {shape = [1, 64, 17, 17]} : tensor<1x64x17x17xf32>
  %x2.pixels = graph.reshape %x2 {shape = [96, 289]} : tensor<96x289xf32>
  %wb = graph.weight @wb : tensor<40x96x1x1xf32>
  %wb.matrix = graph.reshape %wb {shape = [40, 96]} : tensor<40x96xf32>
  %q.pixels = graph.matmul %wb.matrix, %x2.pixels : tensor<40x289xf32>
  %q = graph.reshape %q.pixels {shape = [1, 40, 17, 17]} : tensor<1x40x17x17xf32>
  func.return %p, %q : tensor<1x64x17x17xf32>, tensor<1x40x17x17xf32>
}
