// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=split-traversals at=t traversals="h","w" by=2}' | filecheck %s

// Seven rows become four pairs, six columns three: the four phases of a dilated image.

// CHECK: %t = algebra.scope (i0: 4, i1: 2, i2: 3, i3: 2) sum (k0: 2, k1: 2) %k[k0, k1] * %x[2 * i0 + i1 + 2 * k0, 2 * i2 + i3 + 2 * k1] {{.*}}: tensor<4x2x3x2xf32>
// CHECK: %y = algebra.scope (h: 7, w: 6) exp(%t[h floordiv 2, h - 2 * (h floordiv 2), w floordiv 2, w - 2 * (w floordiv 2)]) : tensor<7x6xf32>
func.func @main(%x: tensor<9x8xf32>, %k: tensor<2x2xf32>) -> tensor<7x6xf32> {
  %t = algebra.scope (h: 7, w: 6) sum (r: 2, s: 2) %x[h + 2 * r, w + 2 * s] * %k[r, s] : tensor<7x6xf32>
  %y = algebra.scope (h: 7, w: 6) exp(%t[h, w]) : tensor<7x6xf32>
  func.return %y : tensor<7x6xf32>
}
