// RUN: isoform-opt %s --split-input-file -p graph-to-algebra | filecheck %s

// An op becomes the scopes that define it; its name, location and notes go with it.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = algebra.scope (i0: 4) max(%x[i0], 0.0) attributes {note = "kept"} : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x attributes {note = "kept"} : tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// Several scopes in a row; values between them have no name.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %0 = algebra.scope (n: 1, f: 2, h: 4, w: 4) sum (c: 3, r: 3, s: 3) %x[n, c, h + r - 1, w + s - 1] * %w[f, c, r, s] : tensor<1x2x4x4xf32>
// CHECK-NEXT: %y = algebra.scope (n: 1, f: 2, h: 4, w: 4) %0[n, f, h, w] + %b[f] : tensor<1x2x4x4xf32>
func.func @main(%x: tensor<1x3x4x4xf32>, %w: tensor<2x3x3x3xf32>, %b: tensor<2xf32>) -> tensor<1x2x4x4xf32> {
  %y = graph.conv %x, %w, %b {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x2x4x4xf32>
  func.return %y : tensor<1x2x4x4xf32>
}

// -----

// A guard is a read of ones; a transposed convolution divides by its stride.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %0 = algebra.ones : tensor<1xf32>
// CHECK-NEXT: %y = algebra.scope (n: 1, f: 1, w: 7) sum (c: 1, s: 3) %x[n, c, (w - s) floordiv 2] * %w[c, f, s] * %0[w - s - 2 * ((w - s) floordiv 2)] : tensor<1x1x7xf32>
func.func @main(%x: tensor<1x1x3xf32>, %w: tensor<1x1x3xf32>) -> tensor<1x1x7xf32> {
  %y = graph.conv_transpose %x, %w {strides = [2], pads = [0, 0], dilations = [1], output_padding = [0]} : tensor<1x1x7xf32>
  func.return %y : tensor<1x1x7xf32>
}

// -----

// Every result of an op with several.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %a = algebra.scope (i0: 2) %x[i0] : tensor<2xf32>
// CHECK-NEXT: %b = algebra.scope (i0: 3) %x[i0 + 2] : tensor<3xf32>
// CHECK-NEXT: func.return %b, %a
func.func @main(%x: tensor<5xf32>) -> (tensor<3xf32>, tensor<2xf32>) {
  %a, %b = graph.split %x {axis = 0, sizes = [2, 3]} : tensor<2xf32>, tensor<3xf32>
  func.return %b, %a : tensor<3xf32>, tensor<2xf32>
}

// -----

// What reads at data is not a scope; weights and constants are data and stay.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %w = graph.weight @w : tensor<5x2xf32>
// CHECK-NEXT: %i = graph.constant dense<[0, -1]> : tensor<2xi64>
// CHECK-NEXT: %y = algebra.extern "graph.gather"(%w, %i) {axis = 0 : i64} : (tensor<5x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
func.func @main() -> tensor<2x2xf32> {
  %w = graph.weight @w : tensor<5x2xf32>
  %i = graph.constant dense<[0, -1]> : tensor<2xi64>
  %y = graph.gather %w, %i : tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}

// -----

// A mean of integers sums in 64 bits: neither sum nor count may overflow the type.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %0 = algebra.scope (i0: 1) sum (k0: 300) i64(%x[k0]) : tensor<1xi64>
// CHECK-NEXT: %y = algebra.scope (i0: 1) i8(%0[i0] / 300) : tensor<1xi8>
func.func @main(%x: tensor<300xi8>) -> tensor<1xi8> {
  %y = graph.reduce_mean %x {axes = [0]} : tensor<1xi8>
  func.return %y : tensor<1xi8>
}

// -----

// Empty tensors have no positions: any index will do, and a sum of nothing is 0.
// CHECK-LABEL: func.func @main
// CHECK: %y = algebra.scope (i0: 2) 0.0 : tensor<2xf32>
// CHECK-NEXT: %z = algebra.scope (i0: 0, i1: 3) %x
func.func @main(%x: tensor<2x0xf32>) -> (tensor<2xf32>, tensor<0x3xf32>) {
  %y = graph.reduce_sum %x {axes = [1], keep_dims = false} : tensor<2xf32>
  %z = graph.reshape %x {shape = [0, 3]} : tensor<0x3xf32>
  func.return %y, %z : tensor<2xf32>, tensor<0x3xf32>
}
