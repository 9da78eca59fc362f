// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=merge-parts first=y second=z},algebra-name-scopes,algebra-apply-rule{rule=merge-parts first=s1 second=s4},dce' | filecheck %s

// Two parts of %a are a batch, and the third, which reads its operands in another order, joins it.

// CHECK-DAG:  [[TWO:%[^ ]+]] = algebra.scope (i0: 2, i1: 4, i2: 3) {{.*}} : tensor<2x4x3xf32>
// CHECK-DAG:  [[ALL:%[^ ]+]] = algebra.scope (i0: 3, i1: 4, i2: 3) {{.*}} : tensor<3x4x3xf32>
// CHECK:      [[BATCH:%[^ ]+]] = algebra.scope (i0: 3, i1: 8, i2: 3) sum (k0: 4) [[ALL]][i0, k0, i2] * %x0[i1, 4 * i0 + k0]
// CHECK-NEXT: algebra.scope (m: 8, n: 3) [[BATCH]][0, m, n]
// CHECK-NEXT: algebra.scope (m: 8, n: 3) [[BATCH]][1, m, n]
// CHECK:      algebra.scope (m: 8, n: 3) [[BATCH]][2, m, n]
func.func @main(%a: tensor<8x12xf32>, %b: tensor<4x3xf32>, %c: tensor<4x3xf32>, %d: tensor<4x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>) {
  %y = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k] * %b[k, n] : tensor<8x3xf32>
  %z = algebra.scope (m: 8, n: 3) sum (k: 4) %a[m, k + 4] * %c[k, n] : tensor<8x3xf32>
  %u = algebra.scope (m: 8, n: 3) sum (k: 4) %d[k, n] * %a[m, k + 8] : tensor<8x3xf32>
  func.return %y, %z, %u : tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>
}
