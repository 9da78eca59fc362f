// RUN: isoform-opt %s -p algebra-sink-copies --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK:      [[E:%\w+]] = algebra.scope (i0: 2, i1: 8, i2: 3) max(%x[i0, i1, i2] + %b[i1], 0.0)
// CHECK-NEXT: %y = algebra.scope (f: 8, h: 6) [[E]][h - 2 * (h floordiv 2), f, h floordiv 2]
func.func @main(%x: tensor<2x8x3xf32>, %b: tensor<8xf32>) -> tensor<8x6xf32> {
  %t = algebra.scope (f: 8, h: 6) %x[h mod 2, f, h floordiv 2] : tensor<8x6xf32>
  %y = algebra.scope (f: 8, h: 6) max(%t[f, h] + %b[f], 0.0) : tensor<8x6xf32>
  func.return %y : tensor<8x6xf32>
}

// -----

// What is read by the dim that was split cannot be computed before.
// CHECK: %t = algebra.scope
// CHECK-NEXT: %y = algebra.scope (f: 8, h: 6) %t[f, h] + %b[h]
func.func @main(%x: tensor<2x8x3xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> {
  %t = algebra.scope (f: 8, h: 6) %x[h mod 2, f, h floordiv 2] : tensor<8x6xf32>
  %y = algebra.scope (f: 8, h: 6) %t[f, h] + %b[h] : tensor<8x6xf32>
  func.return %y : tensor<8x6xf32>
}

// -----

// Nor what may lie outside of the source: the function of zero need not be zero.
// CHECK: %t = algebra.scope
// CHECK-NEXT: %y = algebra.scope (f: 8, h: 8) exp(%t[f, h])
func.func @main(%x: tensor<2x8x3xf32>) -> tensor<8x8xf32> {
  %t = algebra.scope (f: 8, h: 8) %x[h mod 2, f, h floordiv 2] : tensor<8x8xf32>
  %y = algebra.scope (f: 8, h: 8) exp(%t[f, h]) : tensor<8x8xf32>
  func.return %y : tensor<8x8xf32>
}

// -----

// A copy that something else reads stays where it is.
// CHECK: %t = algebra.scope
// CHECK-NEXT: %y = algebra.scope (f: 8, h: 6) exp(%t[f, h])
// CHECK-NEXT: func.return %y, %t
func.func @main(%x: tensor<2x8x3xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %t = algebra.scope (f: 8, h: 6) %x[h mod 2, f, h floordiv 2] : tensor<8x6xf32>
  %y = algebra.scope (f: 8, h: 6) exp(%t[f, h]) : tensor<8x6xf32>
  func.return %y, %t : tensor<8x6xf32>, tensor<8x6xf32>
}
