// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=drop-dead at=t}' | filecheck %s

// The value does not depend on r.

// CHECK: %t = algebra.scope (i0: 8) sum (k0: 4) %x[k0, i0] * %k[k0] {{.*}}: tensor<8xf32>
// CHECK: %y = algebra.scope (h: 8) sum (r: 3) %t[h] : tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4xf32>) -> tensor<8xf32> {
  %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h] * %k[c] : tensor<8x3xf32>
  %y = algebra.scope (h: 8) sum (r: 3) %t[h, r] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
