// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=traversal-merge at=y read=t}' | filecheck %s

// The inner sum is computed where it is read; %t is left to dce.

// CHECK: %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r - 1] * %k[c, r] : tensor<8x3xf32>
// CHECK: %y = algebra.scope (i0: 8) sum (k0: 3, k1: 4) %k[k1, k0] * %x[k1, i0 + k0 - 1] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4x3xf32>) -> tensor<8xf32> {
  %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r - 1] * %k[c, r] : tensor<8x3xf32>
  %y = algebra.scope (h: 8) sum (r: 3) %t[h, r] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
