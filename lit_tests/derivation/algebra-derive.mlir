// RUN: isoform-opt %s -p 'algebra-derive{states=200 gain=0.5}' | filecheck %s

// A transposed convolution becomes a matrix product and a selective sum.

// CHECK: %y.0{{.*}} = algebra.scope
// CHECK: sum (
// CHECK: isoform.rules = ["normalise", "sum-split"
// CHECK: %y = algebra.scope {{.*}} isoform.derivation = "algebra-apply-rule{rule=normalise at=
// CHECK-NEXT: func.return %y
func.func @main(%x: tensor<16x48x2x2xf32>, %k: tensor<48x256x4x4xf32>) -> tensor<16x256x4x4xf32> {
  %one = algebra.ones : tensor<1x1xf32>
  %y = algebra.scope (n: 16, f: 256, h: 4, w: 4) sum (c: 48, r: 4, s: 4)
         %x[n, c, (h + 1 - r) floordiv 2, (w + 1 - s) floordiv 2] * %k[c, f, r, s]
         * %one[(h + 1 - r) mod 2, (w + 1 - s) mod 2] : tensor<16x256x4x4xf32>
  func.return %y : tensor<16x256x4x4xf32>
}
