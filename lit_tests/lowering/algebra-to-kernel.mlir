// RUN: isoform-opt %s --split-input-file -p algebra-to-kernel | filecheck %s

// A product of two reads under a sum is a gemm, operands staying where they are.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.gemm (%0 = %a, %1 = %b) {
// CHECK-NEXT:   %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[n, k] : tensor<4x8xf32>
// CHECK-NEXT:   kernel.yield %2 : tensor<4x8xf32>
// CHECK-NEXT: } contraction <m [m], n [n], k [k]> : tensor<4x8xf32>
func.func @main(%a: tensor<4x16xf32>, %b: tensor<8x16xf32>) -> tensor<4x8xf32> {
  %y = algebra.scope (m: 4, n: 8) sum (k: 16) %a[m, k] * %b[n, k] : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// -----

// A dot product has neither rows nor columns: it is loops.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops (%0 = %a, %1 = %b) {
func.func @main(%a: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<f32> {
  %y = algebra.scope () sum (k: 16) %a[k] * %b[k] : tensor<f32>
  func.return %y : tensor<f32>
}

// -----

// Integers of 64 bits have no templates.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops (%0 = %a, %1 = %b) {
func.func @main(%a: tensor<4x16xi64>, %b: tensor<16x8xi64>) -> tensor<4x8xi64> {
  %y = algebra.scope (m: 4, n: 8) sum (k: 16) %a[m, k] * %b[k, n] : tensor<4x8xi64>
  func.return %y : tensor<4x8xi64>
}

// -----

// Products of float64, and of bytes in 32 bits, have kernels, by weights or by data.
// CHECK-LABEL: func.func @main
// CHECK: %y = kernel.gemm (%0 = %a, %1 = %b) {
// CHECK: %z = kernel.gemm (%0 = %q, %1 = %w) {
// CHECK: %u = kernel.gemm (%0 = %q, %1 = %r) {
func.func @main(%a: tensor<4x16xf64>, %b: tensor<16x8xf64>, %q: tensor<4x16xui8>, %r: tensor<16x8xi8>) -> (tensor<4x8xf64>, tensor<4x8xi32>, tensor<4x8xi32>) {
  %w = graph.weight @w : tensor<16x8xi8>
  %y = algebra.scope (m: 4, n: 8) sum (k: 16) %a[m, k] * %b[k, n] : tensor<4x8xf64>
  %z = algebra.scope (m: 4, n: 8) sum (k: 16) i32(%q[m, k]) * i32(%w[k, n]) : tensor<4x8xi32>
  %u = algebra.scope (m: 4, n: 8) sum (k: 16) i32(%q[m, k]) * i32(%r[k, n]) : tensor<4x8xi32>
  func.return %y, %z, %u : tensor<4x8xf64>, tensor<4x8xi32>, tensor<4x8xi32>
}

// -----

// A convolution is a conv, by constant weights or by data; a transposed one by data is loops.
// CHECK-LABEL: func.func @main
// CHECK: %y = kernel.conv (%0 = %x, %1 = %w) {
// CHECK: } contraction <m [h, w], n [f], k [c, r, s], dims "nc01 * fc01 -> nf01", strides [1, 1], dilations [1, 1], pads [0, 0]> : tensor<1x8x4x4xf32>
// CHECK: %z = kernel.conv (%0 = %x, %1 = %v) {
// CHECK: %t = kernel.loops (%0 = %x, %1 = %v) {
func.func @main(%x: tensor<1x3x6x6xf32>, %v: tensor<8x3x3x3xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x8x8xf32>) {
  %w = graph.weight @w : tensor<8x3x3x3xf32>
  %y = algebra.scope (n: 1, f: 8, h: 4, w: 4) sum (c: 3, r: 3, s: 3) %x[n, c, h + r, w + s] * %w[f, c, r, s] : tensor<1x8x4x4xf32>
  %z = algebra.scope (n: 1, f: 8, h: 4, w: 4) sum (c: 3, r: 3, s: 3) %x[n, c, h + r, w + s] * %v[f, c, r, s] : tensor<1x8x4x4xf32>
  %t = algebra.scope (n: 1, f: 8, h: 8, w: 8) sum (c: 3, r: 3, s: 3) %x[n, c, h - r, w - s] * %v[f, c, r, s] : tensor<1x8x8x8xf32>
  func.return %y, %z, %t : tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x8x8xf32>
}

// -----

// So it is in any order of dims and operands; where nothing slides it is a product.
// CHECK-LABEL: func.func @main
// CHECK: %y = kernel.conv (%0 = %w, %1 = %x) {
// CHECK: } contraction <m [h, w], n [f], k [c, r, s], operands [1, 0], dims "n01c * 01cf -> n01f", strides [1, 1], dilations [1, 1], pads [0, 0]> : tensor<1x4x4x8xf32>
// CHECK: %z = kernel.gemm (%0 = %x, %1 = %v) {
func.func @main(%x: tensor<1x6x6x3xf32>) -> (tensor<1x4x4x8xf32>, tensor<1x6x6x8xf32>) {
  %w = graph.weight @w : tensor<3x3x3x8xf32>
  %v = graph.weight @v : tensor<3x8xf32>
  %y = algebra.scope (n: 1, h: 4, w: 4, f: 8) sum (c: 3, r: 3, s: 3) %w[r, s, c, f] * %x[n, h + r, w + s, c] : tensor<1x4x4x8xf32>
  %z = algebra.scope (n: 1, h: 6, w: 6, f: 8) sum (c: 3) %x[n, h, w, c] * %v[c, f] : tensor<1x6x6x8xf32>
  func.return %y, %z : tensor<1x4x4x8xf32>, tensor<1x6x6x8xf32>
}

// -----

// A copy in row-major order is a view: no code.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.view %x : tensor<4x6xf32> to tensor<2x12xf32>
func.func @main(%x: tensor<4x6xf32>) -> tensor<2x12xf32> {
  %y = algebra.scope (i: 2, j: 12) %x[(12 * i + j) floordiv 6, 12 * i + j - 6 * ((12 * i + j) floordiv 6)] : tensor<2x12xf32>
  func.return %y : tensor<2x12xf32>
}

// -----

// A part of a tensor is not a view of it, and neither is a copy in another order.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops (%0 = %x) {
// CHECK: %z = kernel.loops (%0 = %x) {
func.func @main(%x: tensor<4x6xf32>) -> (tensor<2x6xf32>, tensor<6x4xf32>) {
  %y = algebra.scope (i: 2, j: 6) %x[i, j] : tensor<2x6xf32>
  %z = algebra.scope (i: 6, j: 4) %x[j, i] : tensor<6x4xf32>
  func.return %y, %z : tensor<2x6xf32>, tensor<6x4xf32>
}

// -----

// Ones move into the kernels that read them, where they are bounds checks.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops (%0 = %x) {
// CHECK-NEXT:   %1 = algebra.ones : tensor<3xf32>
// CHECK-NEXT:   %2 = algebra.scope (i: 4) %0[i] * %1[i] : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %o = algebra.ones : tensor<3xf32>
  %y = algebra.scope (i: 4) %x[i] * %o[i] : tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// An extern is a call of the same op.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.call "graph.gather"(%x, %i) {axis = 0 : i64} : (tensor<5x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
func.func @main(%x: tensor<5x2xf32>, %i: tensor<2xi64>) -> tensor<2x2xf32> {
  %y = algebra.extern "graph.gather"(%x, %i) {axis = 0 : i64} : (tensor<5x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}
