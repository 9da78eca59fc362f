// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=delta-elim sum=i}' | filecheck %s

// The guard says i = h - r.

// CHECK: %y = algebra.scope (i0: 8) sum (k0: 4) %k[k0] * %x[i0 - k0] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<8xf32>, %k: tensor<4xf32>) -> tensor<8xf32> {
  %one = algebra.ones : tensor<1xf32>
  %y = algebra.scope (h: 8) sum (r: 4, i: 8) %x[i] * %k[r] * %one[h - i - r] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
