// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=tighten at=t}' | filecheck %s

// The first and the last position read nothing but zeros.

// CHECK: %t = algebra.scope (i0: 8) sum (k0: 4) %x[k0, i0] * %k[k0] {{.*}}: tensor<8xf32>
// CHECK: %y = algebra.scope (h: 8) %t[h - 1] : tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4xf32>) -> tensor<8xf32> {
  %t = algebra.scope (h: 10) sum (c: 4) %x[c, h - 1] * %k[c] : tensor<10xf32>
  %y = algebra.scope (h: 8) %t[h] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
