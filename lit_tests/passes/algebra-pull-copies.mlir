// RUN: isoform-opt %s -p 'algebra-inline-copies,algebra-pull-copies,algebra-inline-copies' --split-input-file | filecheck %s

// Transposes around elementwise scopes cancel: nothing reads in another order than it writes.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %r = algebra.scope (i0: 1, i1: 8, i2: 6, i3: 4) max(%x[0, i1, i2, i3] + %b[i3], 0.0)
// CHECK-NEXT: %s = algebra.scope (i0: 1, i1: 8, i2: 6, i3: 4) exp(%r[i0, i1, i2, i3])
// CHECK-NEXT: %y = algebra.scope (n: 1, j: 8, k: 6, i: 4) %s[n, j, k, i]
// CHECK-NEXT: func.return
func.func @main(%x: tensor<1x8x6x4xf32>, %b: tensor<4xf32>) -> tensor<1x8x6x4xf32> {
  %t = algebra.scope (n: 1, i: 4, j: 8, k: 6) %x[n, j, k, i] : tensor<1x4x8x6xf32>
  %r = algebra.scope (n: 1, i: 4, j: 8, k: 6) max(%t[n, i, j, k] + %b[i], 0.0) : tensor<1x4x8x6xf32>
  %s = algebra.scope (n: 1, i: 4, j: 8, k: 6) exp(%r[n, i, j, k]) : tensor<1x4x8x6xf32>
  %y = algebra.scope (n: 1, j: 8, k: 6, i: 4) %s[n, i, j, k] : tensor<1x8x6x4xf32>
  func.return %y : tensor<1x8x6x4xf32>
}

// -----

// With two operands of its rank one transpose would become two.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %r = algebra.scope (i: 4, j: 8) %x[i, j] + %z[i, j]
// CHECK-NEXT: %y = algebra.scope (j: 8, i: 4) %r[i, j]
func.func @main(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %r = algebra.scope (i: 4, j: 8) %x[i, j] + %z[i, j] : tensor<4x8xf32>
  %y = algebra.scope (j: 8, i: 4) %r[i, j] : tensor<8x4xf32>
  func.return %y : tensor<8x4xf32>
}

// -----

// What something else reads, or what reads a part of it, keeps its order.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %r = algebra.scope (i: 4, j: 8) exp(%x[i, j])
// CHECK-NEXT: %s = algebra.scope (i: 4, j: 8) exp(%r[i, j])
// CHECK-NEXT: %y = algebra.scope (j: 5, i: 4) %s[i, j]
// CHECK-NEXT: %z = algebra.scope (j: 8, i: 4) %r[i, j]
func.func @main(%x: tensor<4x8xf32>) -> (tensor<5x4xf32>, tensor<8x4xf32>) {
  %r = algebra.scope (i: 4, j: 8) exp(%x[i, j]) : tensor<4x8xf32>
  %s = algebra.scope (i: 4, j: 8) exp(%r[i, j]) : tensor<4x8xf32>
  %y = algebra.scope (j: 5, i: 4) %s[i, j] : tensor<5x4xf32>
  %z = algebra.scope (j: 8, i: 4) %r[i, j] : tensor<8x4xf32>
  func.return %y, %z : tensor<5x4xf32>, tensor<8x4xf32>
}
