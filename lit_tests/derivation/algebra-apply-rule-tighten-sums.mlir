// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=tighten-sums}' | filecheck %s

// Two taps of five lie outside of %k.

// CHECK: %y = algebra.scope (i0: 8) sum (k0: 3) %x[i0 + k0 + 1] * %k[k0] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<12xf32>, %k: tensor<3xf32>) -> tensor<8xf32> {
  %y = algebra.scope (h: 8) sum (r: 5) %x[h + r] * %k[r - 1] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
