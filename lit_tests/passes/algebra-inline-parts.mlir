// RUN: isoform-opt %s --split-input-file -p algebra-inline-parts | filecheck %s

// A sum is computed where its parts are read, and so is what it reads in parts then.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %p = algebra.scope (m: 4, n: 3) tanh(exp(%x[m, n]) + %y[m, n]) : tensor<4x3xf32>
// CHECK-NEXT: %q = algebra.scope (m: 4, n: 3) abs(exp(%x[m, n + 3]) + %y[m, n + 3]) : tensor<4x3xf32>
// CHECK-NEXT: func.return %p, %q
func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %e = algebra.scope (m: 4, n: 6) exp(%x[m, n]) : tensor<4x6xf32>
  %s = algebra.scope (m: 4, n: 6) %e[m, n] + %y[m, n] : tensor<4x6xf32>
  %p = algebra.scope (m: 4, n: 3) tanh(%s[m, n]) : tensor<4x3xf32>
  %q = algebra.scope (m: 4, n: 3) abs(%s[m, n + 3]) : tensor<4x3xf32>
  func.return %p, %q : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// Parts that overlap would be computed twice.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %s = algebra.scope (m: 4, n: 6) exp(%x[m, n]) : tensor<4x6xf32>
func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x4xf32>, tensor<4x3xf32>) {
  %s = algebra.scope (m: 4, n: 6) exp(%x[m, n]) : tensor<4x6xf32>
  %p = algebra.scope (m: 4, n: 4) tanh(%s[m, n]) : tensor<4x4xf32>
  %q = algebra.scope (m: 4, n: 3) abs(%s[m, n + 3]) : tensor<4x3xf32>
  func.return %p, %q : tensor<4x4xf32>, tensor<4x3xf32>
}

// -----

// Nor is a row read at once for all, nor what a sum reads.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %s = algebra.scope (m: 4, n: 6) exp(%x[m, n]) : tensor<4x6xf32>
// CHECK-NEXT: %p = algebra.scope (m: 4, n: 3)
// CHECK-NEXT: %q = algebra.scope (m: 4, n: 3)
// CHECK-NEXT: %t = algebra.scope (m: 4, n: 6) exp(%x[m, n]) : tensor<4x6xf32>
func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4xf32>, tensor<4x3xf32>) {
  %s = algebra.scope (m: 4, n: 6) exp(%x[m, n]) : tensor<4x6xf32>
  %p = algebra.scope (m: 4, n: 3) tanh(%s[0, n]) : tensor<4x3xf32>
  %q = algebra.scope (m: 4, n: 3) abs(%s[m, n + 3]) : tensor<4x3xf32>
  %t = algebra.scope (m: 4, n: 6) exp(%x[m, n]) : tensor<4x6xf32>
  %u = algebra.scope (m: 4) sum (n: 3) %t[m, n] : tensor<4xf32>
  %v = algebra.scope (m: 4, n: 3) abs(%t[m, n + 3]) : tensor<4x3xf32>
  func.return %p, %q, %u, %v : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4xf32>, tensor<4x3xf32>
}

// -----

// The epilogue of a product stays.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %p = algebra.scope
// CHECK-NEXT: %s = algebra.scope (m: 4, n: 6) %p[m, n] + %c[n] : tensor<4x6xf32>
func.func @main(%x: tensor<4x9xf32>, %w: tensor<9x6xf32>, %c: tensor<6xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %p = algebra.scope (m: 4, n: 6) sum (k: 9) %x[m, k] * %w[k, n] : tensor<4x6xf32>
  %s = algebra.scope (m: 4, n: 6) %p[m, n] + %c[n] : tensor<4x6xf32>
  %q = algebra.scope (m: 4, n: 3) tanh(%s[m, n]) : tensor<4x3xf32>
  %r = algebra.scope (m: 4, n: 3) abs(%s[m, n + 3]) : tensor<4x3xf32>
  func.return %q, %r : tensor<4x3xf32>, tensor<4x3xf32>
}
