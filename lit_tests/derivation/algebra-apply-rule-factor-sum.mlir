// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=factor-sum at=y},dce' | filecheck %s
// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=factor-sum at=z},dce' | filecheck %s --check-prefix=REST

// The products share %a: what it is multiplied by is added, in the order of the second's columns, too.

// CHECK:      %y.0 = algebra.scope (i0: 6, i1: 4) %c[i0, i1] * -2.0 + %b[i1, i0]
// CHECK-NEXT: %y = algebra.scope (i0: 8, i1: 6) sum (k0: 4) %y.0[i1, k0] * %a[i0, k0]

// The term that does not share it stays.

// REST:      %z.0 = algebra.scope (i0: 6, i1: 4) %d[i1, i0] + %b[i1, i0]
// REST-NEXT: %z.1 = algebra.scope (i0: 8, i1: 6) sum (k0: 4) %z.0[i1, k0] * %a[i0, k0]
// REST-NEXT: %z = algebra.scope (i0: 8, i1: 6) %z.1[i0, i1] + %u[i0, i1]
func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>, %c: tensor<6x4xf32>, %d: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %s = algebra.scope (m: 8, n: 6) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x6xf32>
  %t = algebra.scope (m: 6, n: 8) sum (k: 4) %c[m, k] * %a[n, k] : tensor<6x8xf32>
  %y = algebra.scope (m: 8, n: 6) %s[m, n] - 2.0 * %t[n, m] : tensor<8x6xf32>
  %p = algebra.scope (m: 8, n: 6) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x6xf32>
  %q = algebra.scope (m: 8, n: 6) sum (k: 4) %a[m, k] * %d[k, n] : tensor<8x6xf32>
  %u = algebra.scope (m: 8, n: 6) exp(%b[m mod 4, n]) : tensor<8x6xf32>
  %z = algebra.scope (m: 8, n: 6) %p[m, n] + %q[m, n] + %u[m, n] : tensor<8x6xf32>
  func.return %y, %z : tensor<8x6xf32>, tensor<8x6xf32>
}
