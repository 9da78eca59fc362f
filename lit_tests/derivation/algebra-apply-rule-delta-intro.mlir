// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=delta-intro}' | filecheck %s

// A gather over taps becomes a sum over the positions that meet a tap.

// CHECK: %y = algebra.scope (i0: 8) sum (k0: 6) %k[-i0 + 2 * k0] * %x[k0] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<5xf32>, %k: tensor<4xf32>) -> tensor<8xf32> {
  %one = algebra.ones : tensor<1xf32>
  %y = algebra.scope (h: 8) sum (r: 4) %x[(h + r) floordiv 2] * %k[r] * %one[(h + r) mod 2] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
