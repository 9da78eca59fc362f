// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=merge-shared-operand first=y second=z}' | filecheck %s

// One product of %a with %b and %c side by side; both results are read from it.

// CHECK: %y.0 = algebra.scope (i0: 4, i1: 5) %c[i0, i1 - 3] + %b[i0, i1] {{.*}}: tensor<4x5xf32>
// CHECK: %y = algebra.scope (i0: 8, i1: 5) sum (k0: 4) %y.0[k0, i1] * %a[i0, k0] {{.*}}: tensor<8x5xf32>
// CHECK: %s = algebra.scope (m: 8) sum (n: 2) %y[m, n] * %y[m, n + 3] : tensor<8xf32>
func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x3xf32>, %c: tensor<4x2xf32>) -> tensor<8xf32> {
  %y = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x3xf32>
  %z = algebra.scope (m: 8, n: 2) sum (k: 4) %a[m, k] * %c[k, n] : tensor<8x2xf32>
  %s = algebra.scope (m: 8) sum (n: 2) %y[m, n] * %z[m, n] : tensor<8xf32>
  func.return %s : tensor<8xf32>
}
