// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=merge-copies at=y}' | filecheck %s

// The transposition is read through.

// CHECK: %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
// CHECK: %y = algebra.scope (i0: 8) sum (k0: 4) %x[k0, i0] * %k[k0] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4xf32>) -> tensor<8xf32> {
  %t = algebra.scope (i: 8, j: 4) %x[j, i] : tensor<8x4xf32>
  %y = algebra.scope (i: 8) sum (j: 4) %t[i, j] * %k[j] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
