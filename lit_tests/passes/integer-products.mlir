// RUN: isoform-opt %s --split-input-file -p integer-products,dce | filecheck %s

// Dequantised operands: the bytes are multiplied, the scales after that; the zero point of the left
// operand times the columns' sums is subtracted. A division by a known number joins the scale.
func.func @main(%q: tensor<4x8xui8>) -> tensor<4x6xf32> {
  %v = graph.weight @v : tensor<8x6xi8>
  %s = graph.weight @s : tensor<f32>
  %t = graph.weight @t : tensor<6xf32>
  %c = graph.constant dense<0.5> : tensor<f32>
  %z = graph.constant dense<7> : tensor<i32>
  %q0 = graph.cast %q {to = i32} : tensor<4x8xi32>
  %z0 = graph.broadcast %z {shape = [4, 8], dims = []} : tensor<4x8xi32>
  %q1 = graph.sub %q0, %z0 : tensor<4x8xi32>
  %q2 = graph.cast %q1 {to = f32} : tensor<4x8xf32>
  %s0 = graph.broadcast %s {shape = [4, 8], dims = []} : tensor<4x8xf32>
  %x = graph.mul %q2, %s0 : tensor<4x8xf32>
  %v0 = graph.cast %v {to = i32} : tensor<8x6xi32>
  %v1 = graph.cast %v0 {to = f32} : tensor<8x6xf32>
  %t0 = graph.broadcast %t {shape = [8, 6], dims = [1]} : tensor<8x6xf32>
  %w = graph.mul %v1, %t0 : tensor<8x6xf32>
  %p = graph.matmul %x, %w : tensor<4x6xf32>
  %c0 = graph.broadcast %c {shape = [4, 6], dims = []} : tensor<4x6xf32>
  %y = graph.div %p, %c0 : tensor<4x6xf32>
  func.return %y : tensor<4x6xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[Q:.*]] = graph.cast %q {to = i32}
// CHECK: %[[V:.*]] = graph.cast %v {to = i32}
// CHECK: %[[P:.*]] = graph.matmul %[[Q]], %[[V]]
// CHECK: graph.reduce_sum %[[V]] {axes = [0]}
// CHECK: %[[D:.*]] = graph.sub %[[P]], %
// CHECK: graph.cast %[[D]] {to = f32}
// CHECK-NOT: graph.div %{{.*}} : tensor<4x6xf32>
// CHECK: func.return

// -----

// Unsigned weights are made signed: 128 times the rows' sums is added.
func.func @main(%q: tensor<4x8xui8>) -> tensor<4x6xi32> {
  %v = graph.weight @v : tensor<8x6xui8>
  %q0 = graph.cast %q {to = i32} : tensor<4x8xi32>
  %v0 = graph.cast %v {to = i32} : tensor<8x6xi32>
  %p = graph.matmul %q0, %v0 : tensor<4x6xi32>
  func.return %p : tensor<4x6xi32>
}
// CHECK-LABEL: func.func @main
// CHECK: graph.cast %{{.*}} {to = i8} : tensor<8x6xi8>
// CHECK: graph.matmul
// CHECK: graph.reduce_sum %{{.*}} {axes = [1]} : tensor<4x1xi32>

// -----

// Floats that are no integers stay.
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %w = graph.weight @w : tensor<8x6xf32>
  // CHECK: %y = graph.matmul %x, %w : tensor<4x6xf32>
  %y = graph.matmul %x, %w : tensor<4x6xf32>
  func.return %y : tensor<4x6xf32>
}
