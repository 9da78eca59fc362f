// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=normalise at=y}' | filecheck %s

// A guard that pins a sum is substituted, iterators get their canonical names and order.

// CHECK: %y = algebra.scope (i0: 8) sum (k0: 8) %k[i0 - k0] * %x[k0] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<8xf32>, %k: tensor<4xf32>) -> tensor<8xf32> {
  %one = algebra.ones : tensor<1xf32>
  %y = algebra.scope (h: 8) sum (r: 4, i: 8) %x[i] * %k[r] * %one[h - i - r] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
