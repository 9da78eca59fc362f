// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=split-sum sums=r,s by=2}' | filecheck %s

// Both dims of a window in one step; each term keeps the digits of its own dim.

// CHECK: %y = algebra.scope (i0: 8, i1: 8) sum (k0: 2, k1: 2, k2: 2, k3: 2, k4: 4) %k[k4, k0 + 2 * k1, k2 + 2 * k3] * %x[k4, i0 + k0 + 2 * k1 - 1, i1 + k2 + 2 * k3 - 1] {{.*}}: tensor<8x8xf32>
func.func @main(%x: tensor<4x8x8xf32>, %k: tensor<4x4x4xf32>) -> tensor<8x8xf32> {
  %y = algebra.scope (h: 8, w: 8) sum (c: 4, r: 4, s: 4) %x[c, h + r - 1, w + s - 1] * %k[c, r, s] : tensor<8x8xf32>
  func.return %y : tensor<8x8xf32>
}
