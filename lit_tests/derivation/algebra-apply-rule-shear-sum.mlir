// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=shear-sum sum=r along=h}' | filecheck %s

// Three taps that move with eight positions are ten positions; past its edges %k is 0.

// CHECK: %y = algebra.scope (i0: 8) sum (k0: 4, k1: 10) %k[k0, -i0 + k1] * %x[k0, k1 - 1] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4x3xf32>) -> tensor<8xf32> {
  %y = algebra.scope (h: 8) sum (c: 4, r: 3) %x[c, h + r - 1] * %k[c, r] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
