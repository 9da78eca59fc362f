// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=expression-fuse at=y},dce' | filecheck %s

// The pieces are what the rule expression-split makes of one scope.

// CHECK: %y = algebra.scope (i0: 8) sum (k0: 4) %x[k0, i0] * %k[k0] {{.*}}: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4xf32>) -> tensor<8xf32> {
  %a = algebra.scope (h: 5) sum (c: 4) %x[c, h] * %k[c] : tensor<5xf32>
  %b = algebra.scope (h: 3) sum (c: 4) %x[c, h + 5] * %k[c] : tensor<3xf32>
  %y = algebra.scope (h: 8) %a[h] + %b[h - 5] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
