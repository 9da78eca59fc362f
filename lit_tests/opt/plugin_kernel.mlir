// RUN: isoform-opt %s --plugin %examples/custom_kernel.py -p algebra-to-kernel | filecheck %s
// RUN: isoform-opt %s -p algebra-to-kernel | filecheck %s --check-prefix=WITHOUT

// A library kernel of a plug-in takes what the table's do not.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = demo.outer (%0 = %a, %1 = %b) {
// CHECK-NEXT:   %2 = algebra.scope (m: 4, n: 8) %0[m] * %1[n] : tensor<4x8xf32>
// CHECK: %z = kernel.gemm (%0 = %y, %1 = %c) {
// WITHOUT: %y = kernel.loops (%0 = %a, %1 = %b) {
func.func @main(%a: tensor<4xf32>, %b: tensor<8xf32>, %c: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %y = algebra.scope (m: 4, n: 8) %a[m] * %b[n] : tensor<4x8xf32>
  %z = algebra.scope (m: 4, n: 16) sum (k: 8) %y[m, k] * %c[k, n] : tensor<4x16xf32>
  func.return %z : tensor<4x16xf32>
}
