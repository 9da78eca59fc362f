// RUN: isoform-opt %s --split-input-file -p algebra-join-parts | filecheck %s

// Biases of two parts of a product are one, and so are the scopes that add them.
// CHECK-LABEL: func.func @main
// CHECK:      %p = algebra.scope
// CHECK:      [[ONES:%\w+]] = algebra.ones : tensor<4xi1>
// CHECK-NEXT: [[BIAS:%\w+]] = algebra.scope (i0: 6) select([[ONES]][i0], %b[i0], %c[i0 - 4]) : tensor<6xf32>
// CHECK-NEXT: [[ALL:%\w+]] = algebra.scope (m: 7, n: 6) max(%p[m, n] + [[BIAS]][n], 0.0) * %s[m] : tensor<7x6xf32>
// CHECK-NEXT: %r = algebra.scope (m: 7, n: 2) [[ALL]][m, n + 4] : tensor<7x2xf32>
// CHECK-NEXT: %q = algebra.scope (m: 7, n: 4) [[ALL]][m, n] : tensor<7x4xf32>
// CHECK-NEXT: func.return %r, %q
func.func @main(%x: tensor<7x9xf32>, %s: tensor<7xf32>) -> (tensor<7x2xf32>, tensor<7x4xf32>) {
  %w = graph.weight @w : tensor<9x6xf32>
  %p = algebra.scope (m: 7, n: 6) sum (k: 9) %x[m, k] * %w[k, n] : tensor<7x6xf32>
  %c = graph.weight @c : tensor<2xf32>
  %r = algebra.scope (m: 7, n: 2) max(%p[m, n + 4] + %c[n], 0.0) * %s[m] : tensor<7x2xf32>
  %b = graph.weight @b : tensor<4xf32>
  %q = algebra.scope (m: 7, n: 4) max(%p[m, n] + %b[n], 0.0) * %s[m] : tensor<7x4xf32>
  func.return %r, %q : tensor<7x2xf32>, tensor<7x4xf32>
}

// -----

// Other functions, and a column that nobody reads: no scope of the whole computes the same.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %p = algebra.scope
// CHECK-NEXT: %q = algebra.scope (m: 7, n: 4) exp(%p[m, n]) : tensor<7x4xf32>
// CHECK-NEXT: %r = algebra.scope (m: 7, n: 2) max(%p[m, n + 4], 0.0) : tensor<7x2xf32>
// CHECK-NEXT: %o = algebra.scope
// CHECK-NEXT: %t = algebra.scope (m: 7, n: 4) exp(%o[m, n]) : tensor<7x4xf32>
// CHECK-NEXT: %u = algebra.scope (m: 7, n: 1) exp(%o[m, n + 5]) : tensor<7x1xf32>
func.func @main(%x: tensor<7x9xf32>, %w: tensor<9x6xf32>) -> (tensor<7x4xf32>, tensor<7x2xf32>, tensor<7x4xf32>, tensor<7x1xf32>) {
  %p = algebra.scope (m: 7, n: 6) sum (k: 9) %x[m, k] * %w[k, n] : tensor<7x6xf32>
  %q = algebra.scope (m: 7, n: 4) exp(%p[m, n]) : tensor<7x4xf32>
  %r = algebra.scope (m: 7, n: 2) max(%p[m, n + 4], 0.0) : tensor<7x2xf32>
  %o = algebra.scope (m: 7, n: 6) sum (k: 9) %x[m, k] * %w[k, n] : tensor<7x6xf32>
  %t = algebra.scope (m: 7, n: 4) exp(%o[m, n]) : tensor<7x4xf32>
  %u = algebra.scope (m: 7, n: 1) exp(%o[m, n + 5]) : tensor<7x1xf32>
  func.return %q, %r, %t, %u : tensor<7x4xf32>, tensor<7x2xf32>, tensor<7x4xf32>, tensor<7x1xf32>
}

// -----

// What adds parts of two products is one scope that reads both.
// CHECK-LABEL: func.func @main
// CHECK:      [[ALL:%\w+]] = algebra.scope (m: 7, n: 6) exp(%p[m, n] + %o[m, n]) : tensor<7x6xf32>
// CHECK-NEXT: %q = algebra.scope (m: 7, n: 4) [[ALL]][m, n] : tensor<7x4xf32>
// CHECK-NEXT: %r = algebra.scope (m: 7, n: 2) [[ALL]][m, n + 4] : tensor<7x2xf32>
func.func @main(%x: tensor<7x9xf32>, %h: tensor<7x5xf32>, %w: tensor<9x6xf32>, %u: tensor<5x6xf32>) -> (tensor<7x4xf32>, tensor<7x2xf32>) {
  %p = algebra.scope (m: 7, n: 6) sum (k: 9) %x[m, k] * %w[k, n] : tensor<7x6xf32>
  %o = algebra.scope (m: 7, n: 6) sum (k: 5) %h[m, k] * %u[k, n] : tensor<7x6xf32>
  %q = algebra.scope (m: 7, n: 4) exp(%p[m, n] + %o[m, n]) : tensor<7x4xf32>
  %r = algebra.scope (m: 7, n: 2) exp(%p[m, n + 4] + %o[m, n + 4]) : tensor<7x2xf32>
  func.return %q, %r : tensor<7x4xf32>, tensor<7x2xf32>
}

// -----

// What the whole product goes through first does not hinder it, nor does a dim of one place, which
// the parts read at 0.
// CHECK-LABEL: func.func @main
// CHECK:      %d = algebra.scope (n: 1, m: 7, f: 6) %p[n, m, f] + %b[f] : tensor<1x7x6xf32>
// CHECK-NEXT: [[ALL:%\w+]] = algebra.scope (n: 1, m: 7, f: 6) max(%d[n, m, f], 0.0) : tensor<1x7x6xf32>
// CHECK-NEXT: %q = algebra.scope (n: 1, m: 7, f: 4) [[ALL]][n, m, f] : tensor<1x7x4xf32>
// CHECK-NEXT: %r = algebra.scope (n: 1, m: 7, f: 2) [[ALL]][n, m, f + 4] : tensor<1x7x2xf32>
func.func @main(%x: tensor<1x7x9xf32>, %w: tensor<9x6xf32>, %b: tensor<6xf32>) -> (tensor<1x7x4xf32>, tensor<1x7x2xf32>) {
  %p = algebra.scope (n: 1, m: 7, f: 6) sum (k: 9) %x[n, m, k] * %w[k, f] : tensor<1x7x6xf32>
  %d = algebra.scope (n: 1, m: 7, f: 6) %p[n, m, f] + %b[f] : tensor<1x7x6xf32>
  %q = algebra.scope (n: 1, m: 7, f: 4) max(%d[0, m, f], 0.0) : tensor<1x7x4xf32>
  %r = algebra.scope (n: 1, m: 7, f: 2) max(%d[0, m, f + 4], 0.0) : tensor<1x7x2xf32>
  func.return %q, %r : tensor<1x7x4xf32>, tensor<1x7x2xf32>
}
