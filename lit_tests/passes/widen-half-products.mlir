// RUN: isoform-opt %s --split-input-file -p widen-half-products | filecheck %s

// An operand is converted once, whoever reads it.
func.func @main(%a: tensor<4x4xf16>, %b: tensor<4x4xf16>) -> (tensor<4x4xf16>, tensor<4x4xf16>) {
  %y = algebra.scope (m: 4, n: 4) sum (k: 4) %a[m, k] * %b[k, n] : tensor<4x4xf16>
  %z = algebra.scope (m: 4, n: 4) sum (k: 4) %a[k, m] * %b[k, n] : tensor<4x4xf16>
  func.return %y, %z : tensor<4x4xf16>, tensor<4x4xf16>
}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: f32(
// CHECK: sum (k: 4) %{{.*}}[m, k] * %{{.*}}[k, n] : tensor<4x4xf32>
// CHECK: f16(%{{.*}}[i0, i1]) : tensor<4x4xf16>
// CHECK-NOT: f32(
// CHECK: sum (k: 4) %{{.*}}[k, m] * %{{.*}}[k, n] : tensor<4x4xf32>

// -----

// Sums of other things than products, and products in float32, stay.
func.func @main(%a: tensor<4x4xf16>, %b: tensor<4x4xf32>) -> (tensor<4xf16>, tensor<4x4xf32>) {
  %y = algebra.scope (m: 4) sum (k: 4) %a[m, k] : tensor<4xf16>
  %z = algebra.scope (m: 4, n: 4) sum (k: 4) %b[m, k] * %b[k, n] : tensor<4x4xf32>
  func.return %y, %z : tensor<4xf16>, tensor<4x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: f32(
// CHECK-NOT: f16(
