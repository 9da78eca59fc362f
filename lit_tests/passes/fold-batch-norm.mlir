// RUN: isoform-opt %s -p fold-batch-norm | filecheck %s

// CHECK-LABEL: func.func @main
// The factor is scale / sqrt(variance + epsilon), the shift bias - mean * factor.
// CHECK:       [[EPS:%\w+]] = graph.constant dense<1.000000e-05> : tensor<4xf32>
// CHECK-NEXT:  [[SUM:%\w+]] = graph.add %v, [[EPS]] : tensor<4xf32>
// CHECK-NEXT:  [[ROOT:%\w+]] = graph.sqrt [[SUM]] : tensor<4xf32>
// CHECK-NEXT:  [[A:%\w+]] = graph.div %s, [[ROOT]] : tensor<4xf32>
// CHECK-NEXT:  [[MA:%\w+]] = graph.mul %m, [[A]] : tensor<4xf32>
// CHECK-NEXT:  [[B:%\w+]] = graph.sub %b, [[MA]] : tensor<4xf32>
// CHECK-NEXT:  [[A4:%\w+]] = graph.broadcast [[A]] {shape = [4, 3, 3, 3], dims = [0]}
// CHECK-NEXT:  [[WA:%\w+]] = graph.mul %w, [[A4]] : tensor<4x3x3x3xf32>
// CHECK-NEXT:  [[Y:%\w+]] = graph.conv %x, [[WA]], [[B]] {{.*}}isoform.rules = ["fold-batch-norm"]
// CHECK-NEXT:  func.return [[Y]]
func.func @main(%x: tensor<1x3x6x6xf32>) -> tensor<1x4x6x6xf32> {
  %w = graph.weight @w : tensor<4x3x3x3xf32>
  %s = graph.weight @s : tensor<4xf32>
  %b = graph.weight @b : tensor<4xf32>
  %m = graph.weight @m : tensor<4xf32>
  %v = graph.weight @v : tensor<4xf32>
  %c = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x4x6x6xf32>
  %y = graph.batch_norm %c, %s, %b, %m, %v : tensor<1x4x6x6xf32>
  func.return %y : tensor<1x4x6x6xf32>
}
