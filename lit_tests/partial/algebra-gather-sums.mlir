// RUN: isoform-opt %s -p 'algebra-gather-sums' | filecheck %s
// RUN: isoform-opt %s -p 'algebra-gather-sums{at="y"}' | filecheck %s
// RUN: not isoform-opt %s -p 'algebra-gather-sums{at="z"}' 2>&1 | filecheck %s --check-prefix=NONE
// NONE: %z: there is no sum to gather

// Two products are added, one with a bias: their sum is a scope of its own. A product that is read
// twice stays where it is.

// CHECK:      %y.sum.0 = algebra.scope (m: 8, n: 6) %a[m, n] + %b[m, n]
// CHECK-NEXT: %y = algebra.scope (m: 8, n: 6) max(%y.sum.0[m, n] + %c[n], 0.0)
// CHECK:      %z = algebra.scope (m: 8, n: 6) %y[m, n] + %e[m, n] + %e[m, n]
func.func @main(%x: tensor<8x4xf32>, %h: tensor<8x5xf32>, %c: tensor<6xf32>, %u: tensor<4x6xf32>, %v: tensor<5x6xf32>) -> tensor<8x6xf32> {
  %a = algebra.scope (m: 8, n: 6) sum (k: 4) %x[m, k] * %u[k, n] : tensor<8x6xf32>
  %b = algebra.scope (m: 8, n: 6) sum (k: 5) %h[m, k] * %v[k, n] : tensor<8x6xf32>
  %d = algebra.scope (m: 8, n: 6) %a[m, n] + %c[n] : tensor<8x6xf32>
  %y = algebra.scope (m: 8, n: 6) max(%d[m, n] + %b[m, n], 0.0) : tensor<8x6xf32>
  %e = algebra.scope (m: 8, n: 6) sum (k: 4) %x[m, k] * %u[k, n] : tensor<8x6xf32>
  %z = algebra.scope (m: 8, n: 6) %y[m, n] + %e[m, n] + %e[m, n] : tensor<8x6xf32>
  func.return %z : tensor<8x6xf32>
}
