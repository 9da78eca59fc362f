// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=split-sum sums=r by=2}' | filecheck %s

// Three taps become two pairs; the read of %k is 0 past the last one.

// CHECK: %y = algebra.scope (i0: 8) sum (k0: 2, k1: 2, k2: 4) %k[k2, k0 + 2 * k1] * %x[k2, i0 + k0 + 2 * k1 - 1] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4x3xf32>) -> tensor<8xf32> {
  %y = algebra.scope (h: 8) sum (c: 4, r: 3) %x[c, h + r - 1] * %k[c, r] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
