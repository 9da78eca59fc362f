// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=flatten at="t" traversals="f","r"}' | filecheck %s
// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=flatten at="t" traversals="f","r"},algebra-apply-rule{rule=split-traversal at="t" traversal="i0" by=3}' | filecheck %s --check-prefix BACK

// CHECK: %t = algebra.scope (i0: 12, i1: 8) sum (k0: 5) %x[k0, i1] * %k[i0 floordiv 3, k0, i0 - 3 * (i0 floordiv 3)]
// CHECK: %y = algebra.scope (f: 4, h: 6) sum (r: 3) %t[3 * f + r, h + r] : tensor<4x6xf32>
// BACK:  %t = algebra.scope (i0: 4, i1: 3, i2: 8) sum (k0: 5) %x[k0, i2] * %k[i0, k0, i1]
// BACK:  %y = algebra.scope (f: 4, h: 6) sum (r: 3) %t[f, r, h + r] : tensor<4x6xf32>
func.func @main(%x: tensor<5x8xf32>, %k: tensor<4x5x3xf32>) -> tensor<4x6xf32> {
  %t = algebra.scope (f: 4, h: 8, r: 3) sum (c: 5) %k[f, c, r] * %x[c, h] : tensor<4x8x3xf32>
  %y = algebra.scope (f: 4, h: 6) sum (r: 3) %t[f, h + r, r] : tensor<4x6xf32>
  func.return %y : tensor<4x6xf32>
}
