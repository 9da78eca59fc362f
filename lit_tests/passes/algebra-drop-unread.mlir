// RUN: isoform-opt %s --split-input-file -p algebra-drop-unread | filecheck %s

// Four columns of a product are read, by a slice: they are computed, and the slice is gone.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = algebra.scope (m: 6, n: 4) sum (k: 5) %a[m, k] * %b[k, n + 2] : tensor<6x4xf32>
// CHECK-NEXT: func.return %y
func.func @main(%a: tensor<6x5xf32>, %b: tensor<5x9xf32>) -> tensor<6x4xf32> {
  %p = algebra.scope (m: 6, n: 9) sum (k: 5) %a[m, k] * %b[k, n] : tensor<6x9xf32>
  %y = algebra.scope (m: 6, n: 4) %p[m, n + 2] : tensor<6x4xf32>
  func.return %y : tensor<6x4xf32>
}

// -----

// All readers together decide: every third place from 1 to 7. What the scope reads shrinks too.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %e = algebra.scope (i: 3) exp(%x[6 * i + 2]) : tensor<3xf32>
// CHECK-NEXT: %p = algebra.scope (i: 3) max(%e[i], 0.0) : tensor<3xf32>
// CHECK-NEXT: %y = algebra.scope (i: 2) %p[i] + %p[i + 1] : tensor<2xf32>
func.func @main(%x: tensor<20xf32>) -> tensor<2xf32> {
  %e = algebra.scope (i: 20) exp(%x[i]) : tensor<20xf32>
  %p = algebra.scope (i: 10) max(%e[2 * i], 0.0) : tensor<10xf32>
  %y = algebra.scope (i: 2) %p[3 * i + 1] + %p[3 * i + 4] : tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

// Reads outside the shape find the same value there as before.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %p = algebra.scope (i: 5) exp(%x[i]) : tensor<5xf32>
// CHECK-NEXT: %q = algebra.scope (i: 3) exp(%x[i + 5]) : tensor<3xf32>
// CHECK-NEXT: %y = algebra.scope (i: 6) %p[i - 1] + %q[i] else 1.0 : tensor<6xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<6xf32> {
  %p = algebra.scope (i: 8) exp(%x[i]) : tensor<8xf32>
  %q = algebra.scope (i: 8) exp(%x[i]) : tensor<8xf32>
  %y = algebra.scope (i: 6) %p[i - 1] + %q[i + 5] else 1.0 : tensor<6xf32>
  func.return %y : tensor<6xf32>
}

// -----

// A convolution computes a box, but keeps its stride; so does what an output reads, or a call.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %c = algebra.scope (n: 1, f: 4, h: 3, w: 8) sum (c: 3, r: 3, s: 3) %x[n, c, h + r, w + s - 1] * %w[f, c, r, s] : tensor<1x4x3x8xf32>
// CHECK-NEXT: %y = algebra.scope (n: 1, f: 4, h: 2, w: 8) max(%c[n, f, 2 * h, w], 0.0) : tensor<1x4x2x8xf32>
// CHECK-NEXT: %e = algebra.scope (i: 8) exp
// CHECK-NEXT: %z = algebra.scope (i: 2) %e[i] : tensor<2xf32>
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<8xf32>) -> (tensor<1x4x2x8xf32>, tensor<8xf32>, tensor<2xf32>) {
  %c = algebra.scope (n: 1, f: 4, h: 8, w: 8) sum (c: 3, r: 3, s: 3) %x[n, c, h + r - 1, w + s - 1] * %w[f, c, r, s] : tensor<1x4x8x8xf32>
  %y = algebra.scope (n: 1, f: 4, h: 2, w: 8) max(%c[n, f, 2 * h + 1, w], 0.0) : tensor<1x4x2x8xf32>
  %e = algebra.scope (i: 8) exp(%v[i]) : tensor<8xf32>
  %z = algebra.scope (i: 2) %e[i] : tensor<2xf32>
  func.return %y, %e, %z : tensor<1x4x2x8xf32>, tensor<8xf32>, tensor<2xf32>
}
