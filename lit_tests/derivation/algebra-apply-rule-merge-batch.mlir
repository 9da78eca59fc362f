// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=merge-batch first=y second=z}' | filecheck %s

// Two products of different operands are a batch of two; both results are read from it.

// CHECK: %y.0 = algebra.scope (i0: 2, i1: 4, i2: 3) %{{.*}}[i0 - 1] * %d[i1, i2] + %{{.*}}[-i0] * %b[i1, i2]
// CHECK: %y.1 = algebra.scope (i0: 2, i1: 8, i2: 4) %{{.*}}[i0 - 1] * %c[i1, i2] + %{{.*}}[-i0] * %a[i1, i2]
// CHECK: %y = algebra.scope (i0: 2, i1: 8, i2: 3) sum (k0: 4) %y.0[i0, k0, i2] * %y.1[i0, i1, k0]
// CHECK: %s = algebra.scope (m: 8) sum (n: 3) %y[0, m, n] * %y[1, m, n] : tensor<8xf32>
func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x3xf32>, %c: tensor<8x4xf32>, %d: tensor<4x3xf32>) -> tensor<8xf32> {
  %y = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x3xf32>
  %z = algebra.scope (m: 8, n: 3) sum (k: 4) %c[m, k] * %d[k, n] : tensor<8x3xf32>
  %s = algebra.scope (m: 8) sum (n: 3) %y[m, n] * %z[m, n] : tensor<8xf32>
  func.return %s : tensor<8xf32>
}
