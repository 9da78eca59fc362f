// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=expression-split traversal=h position=5}' | filecheck %s

// Two pieces, each 0 outside its own positions.

// CHECK: %y.0 = algebra.scope (i0: 5) sum (k0: 4) %x[k0, i0] * %k[k0] {{.*}}: tensor<5xf32>
// CHECK: %y.1 = algebra.scope (i0: 3) sum (k0: 4) %x[k0, i0 + 5] * %k[k0] {{.*}}: tensor<3xf32>
// CHECK: %y = algebra.scope (i0: 8) %y.0[i0] + %y.1[i0 - 5] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4xf32>) -> tensor<8xf32> {
  %y = algebra.scope (h: 8) sum (c: 4) %x[c, h] * %k[c] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
