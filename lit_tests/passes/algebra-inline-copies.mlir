// RUN: isoform-opt %s --split-input-file -p algebra-inline-copies | filecheck %s

// A reader of a transpose, a broadcast or a slice reads its source.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = algebra.scope (i: 8, j: 4) %x[j, i] + %b[j] * %x[-j + 3, i] : tensor<8x4xf32>
// CHECK-NEXT: func.return
func.func @main(%x: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
  %c = algebra.scope (i: 8, j: 4) %b[j] : tensor<8x4xf32>
  %r = algebra.scope (i: 8, j: 4) %x[-j + 3, i] : tensor<8x4xf32>
  %y = algebra.scope (i: 8, j: 4) %t[i, j] + %c[i, j] * %r[i, j] : tensor<8x4xf32>
  func.return %y : tensor<8x4xf32>
}

// -----

// Copies of copies; what something else reads stays.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %u = algebra.scope (i: 4, j: 8) %x[i, j] : tensor<4x8xf32>
// CHECK-NEXT: %y = algebra.scope (i: 4) exp(%x[i, 0]) : tensor<4xf32>
// CHECK-NEXT: func.return %y, %u
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
  %u = algebra.scope (i: 4, j: 8) %t[j, i] : tensor<4x8xf32>
  %y = algebra.scope (i: 4) exp(%u[i, 0]) : tensor<4xf32>
  func.return %y, %u : tensor<4xf32>, tensor<4x8xf32>
}

// -----

// A read that leaves the copy finds 0 there, not what its source has: it stays.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %s = algebra.scope (i: 4) %x[i + 2] : tensor<4xf32>
// CHECK-NEXT: %y = algebra.scope (i: 6) %s[i - 1] : tensor<6xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<6xf32> {
  %s = algebra.scope (i: 4) %x[i + 2] : tensor<4xf32>
  %y = algebra.scope (i: 6) %s[i - 1] : tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// -----

// Padding is read through too, with its own value outside.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = algebra.scope (i: 6) exp(%x[i - 1] else 0.5) : tensor<6xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %p = algebra.scope (i: 6) %x[i - 1] else 0.5 : tensor<6xf32>
  %y = algebra.scope (i: 6) exp(%p[i]) : tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// -----

// A reshape would put a floor into the index: as a view of the same buffer it costs nothing.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %r = algebra.scope
// CHECK-NEXT: %y = algebra.scope (i: 12) exp(%r[i]) : tensor<12xf32>
func.func @main(%x: tensor<3x4xf32>) -> tensor<12xf32> {
  %r = algebra.scope (i: 12) %x[i floordiv 4, i - 4 * (i floordiv 4)] : tensor<12xf32>
  %y = algebra.scope (i: 12) exp(%r[i]) : tensor<12xf32>
  func.return %y : tensor<12xf32>
}

// -----

// A copy of all of its source is its source, also where it is read beyond the shape.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = algebra.scope (i: 4) sum (r: 3) %x[i + r - 1] : tensor<4xf32>
// CHECK-NEXT: func.return
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = algebra.scope (i: 4) %x[i] : tensor<4xf32>
  %y = algebra.scope (i: 4) sum (r: 3) %t[i + r - 1] : tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// The beginning of a longer source is not all of it: beyond the copy's shape is 0, not more of it.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %t = algebra.scope (i: 4) %x[i] : tensor<4xf32>
// CHECK-NEXT: %y = algebra.scope (i: 4) sum (r: 3) %t[i + r - 1] : tensor<4xf32>
func.func @main(%x: tensor<6xf32>) -> tensor<4xf32> {
  %t = algebra.scope (i: 4) %x[i] : tensor<4xf32>
  %y = algebra.scope (i: 4) sum (r: 3) %t[i + r - 1] : tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// A copy that a matrix product needs stays: the band itself may be left, which no product reads.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %b = algebra.scope
// CHECK-NEXT: %y = algebra.scope (m: 4, n: 5) sum (k: 6) %b[m, k] * %v[2 * k, n] : tensor<4x5xf32>
func.func @main(%p: tensor<4x3xf32>, %v: tensor<12x5xf32>) -> tensor<4x5xf32> {
  %b = algebra.scope (m: 4, k: 6) %p[m, k - m] : tensor<4x6xf32>
  %w = algebra.scope (k: 6, n: 5) %v[2 * k, n] : tensor<6x5xf32>
  %y = algebra.scope (m: 4, n: 5) sum (k: 6) %b[m, k] * %w[k, n] : tensor<4x5xf32>
  func.return %y : tensor<4x5xf32>
}

// -----

// An exponent that is a constant of one element becomes a number; other constants stay.
// CHECK-LABEL: func.func @main
// CHECK: %y = algebra.scope (i: 4) pow(%x[i], 2.0) + %e[] : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<2.0> : tensor<f32>
  %e = graph.constant dense<3.0> : tensor<f32>
  %b = algebra.scope (i: 4) %c[] : tensor<4xf32>
  %y = algebra.scope (i: 4) pow(%x[i], %b[i]) + %e[] : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
