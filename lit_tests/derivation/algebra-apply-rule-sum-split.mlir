// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=sum-split sums="c"}' | filecheck %s

// Factors that use the inner sum move to a scope of their own, which the others read.

// CHECK: %y.0 = algebra.scope (i0: 8, i1: 3) sum (k0: 4) %k[k0, i1] * %x[k0, i0 + i1 - 1] {{.*}}: tensor<8x3xf32>
// CHECK: %y = algebra.scope (i0: 8) sum (k0: 3) %y.0[i0, k0] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4x3xf32>) -> tensor<8xf32> {
  %y = algebra.scope (h: 8) sum (c: 4, r: 3) %x[c, h + r - 1] * %k[c, r] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
