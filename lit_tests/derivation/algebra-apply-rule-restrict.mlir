// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=restrict at=t traversal=h low=2 high=8}' | filecheck %s

// Only positions 2 to 7 are read.

// CHECK: %t = algebra.scope (i0: 6) sum (k0: 4) %k[k0] * %x[k0, i0 + 2] {{.*}}: tensor<6xf32>
// CHECK: %y = algebra.scope (h: 6) %t[h] : tensor<6xf32>
func.func @main(%x: tensor<4x10xf32>, %k: tensor<4xf32>) -> tensor<6xf32> {
  %t = algebra.scope (h: 10) sum (c: 4) %x[c, h] * %k[c] : tensor<10xf32>
  %y = algebra.scope (h: 6) %t[h + 2] : tensor<6xf32>
  func.return %y : tensor<6xf32>
}
