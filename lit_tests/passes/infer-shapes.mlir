// RUN: isoform-opt %s --disable-verify -p infer-shapes | filecheck %s

// CHECK:      func.func @main(%x: tensor<5x3xf32>) -> tensor<5x1xf32> {
// CHECK-NEXT:   %y = graph.relu %x : tensor<5x3xf32>
// CHECK-NEXT:   %z = graph.reduce_sum %y {axes = [1]} : tensor<5x1xf32>
// CHECK-NEXT:   func.return %z : tensor<5x1xf32>
func.func @main(%x: tensor<5x3xf32>) -> tensor<2x1xf32> {
  %y = graph.relu %x : tensor<2x3xf32>
  %z = graph.reduce_sum %y {axes = [1]} : tensor<2x1xf32>
  func.return %z : tensor<2x1xf32>
}
