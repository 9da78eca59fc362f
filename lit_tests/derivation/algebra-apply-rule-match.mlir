// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=match at=y kernel=gemm}' | filecheck %s

// im2col: the data is laid out, the product is a gemm, its result is put in order.

// CHECK: %y.0 = algebra.scope (i0: 3, i1: 4, i2: 2, i3: 6) %x[i2, i1, i0 + i3 - 1] {{.*}}: tensor<3x4x2x6xf32>
// CHECK: %y.1 = algebra.scope (i0: 3, i1: 2, i2: 6) sum (k0: 3, k1: 4) %y.0[k0, k1, i1, i2] * %k[i0, k1, k0] {{.*}}: tensor<3x2x6xf32>
// CHECK: %y = algebra.scope (n: 2, f: 3, h: 6) %y.1[f, n, h] {{.*}}: tensor<2x3x6xf32>
func.func @main(%x: tensor<2x4x6xf32>, %k: tensor<3x4x3xf32>) -> tensor<2x3x6xf32> {
  %y = algebra.scope (n: 2, f: 3, h: 6) sum (c: 4, r: 3) %x[n, c, h + r - 1] * %k[f, c, r] : tensor<2x3x6xf32>
  func.return %y : tensor<2x3x6xf32>
}
