// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=merge-rows first=y second=z}' | filecheck %s

// Three filters of two taps and five of one: eleven rows of one product.

// CHECK: %y.0 = algebra.scope
// CHECK: tensor<11x4xf32>
// CHECK: %y = algebra.scope (i0: 11, i1: 8) sum (k0: 4) {{.*}}: tensor<11x8xf32>
// CHECK: %s = algebra.scope (m: 8) sum (f: 3, r: 2) %y[2 * f + r, m] * %y[f + 6, m] : tensor<8xf32>
func.func @main(%a: tensor<4x8xf32>, %w: tensor<3x4x2xf32>, %v: tensor<5x4xf32>) -> tensor<8xf32> {
  %y = algebra.scope (f: 3, r: 2, m: 8) sum (k: 4) %w[f, k, r] * %a[k, m] : tensor<3x2x8xf32>
  %z = algebra.scope (f: 5, m: 8) sum (k: 4) %v[f, k] * %a[k, m] : tensor<5x8xf32>
  %s = algebra.scope (m: 8) sum (f: 3, r: 2) %y[f, r, m] * %z[f, m] : tensor<8xf32>
  func.return %s : tensor<8xf32>
}
