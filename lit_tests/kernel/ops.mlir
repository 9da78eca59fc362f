// RUN: isoform-opt %s | isoform-opt | filecheck %s
// RUN: isoform-opt %s --print-op-generic | isoform-opt | filecheck %s
// RUN: isoform-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// A generated loop nest over fused scopes.

// CHECK-LABEL: func.func @loops(
// CHECK-NEXT: %y = kernel.loops (%0 = %x, %1 = %b) {
// CHECK-NEXT: %2 = algebra.scope (i: 4, j: 8) %0[i, j] + %1[j] : tensor<4x8xf32>
// CHECK-NEXT: %3 = algebra.scope (i: 4, j: 8) max(%2[i, j], 0.0) : tensor<4x8xf32>
// CHECK-NEXT: kernel.yield %3 : tensor<4x8xf32>
// CHECK-NEXT: } : tensor<4x8xf32>
// CHECK-NEXT: func.return %y : tensor<4x8xf32>
func.func @loops(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %y = kernel.loops (%0 = %x, %1 = %b) {
    %2 = algebra.scope (i: 4, j: 8) %0[i, j] + %1[j] : tensor<4x8xf32>
    %3 = algebra.scope (i: 4, j: 8) max(%2[i, j], 0.0) : tensor<4x8xf32>
    kernel.yield %3 : tensor<4x8xf32>
  } : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// A schedule, a place in the arena, attributes; ones live inside a kernel.

// CHECK-LABEL: func.func @planned_and_scheduled(
// CHECK-NEXT: %y = kernel.loops (%0 = %x) schedule {tile = array<i64: 2, 4>} offset 128 : i64 attributes {isoform.rules = ["r"]} {
// CHECK-NEXT: %1 = algebra.ones : tensor<7xf32>
// CHECK-NEXT: %2 = algebra.scope (i: 4, j: 8) %0[i, j] * %1[j] : tensor<4x8xf32>
// CHECK-NEXT: kernel.yield %2 : tensor<4x8xf32>
// CHECK-NEXT: } : tensor<4x8xf32>
// CHECK-NEXT: func.return %y : tensor<4x8xf32>
// GENERIC: "kernel.loops"(%x) <{schedule = {tile = array<i64: 2, 4>}, offset = 128 : i64}> ({
// GENERIC: ^bb0(%0: tensor<4x8xf32>):
func.func @planned_and_scheduled(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = kernel.loops (%0 = %x) schedule {tile = array<i64: 2, 4>} offset 128 : i64 attributes {isoform.rules = ["r"]} {
    %1 = algebra.ones : tensor<7xf32>
    %2 = algebra.scope (i: 4, j: 8) %0[i, j] * %1[j] : tensor<4x8xf32>
    kernel.yield %2 : tensor<4x8xf32>
  } : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// No operands.

// CHECK-LABEL: func.func @without_operands(
// CHECK-NEXT: %y = kernel.loops () {
// CHECK-NEXT: %0 = algebra.scope (i: 2) 1.0 : tensor<2xf32>
// CHECK-NEXT: kernel.yield %0 : tensor<2xf32>
// CHECK-NEXT: } : tensor<2xf32>
// CHECK-NEXT: func.return %y : tensor<2xf32>
func.func @without_operands() -> tensor<2xf32> {
  %y = kernel.loops () {
    %0 = algebra.scope (i: 2) 1.0 : tensor<2xf32>
    kernel.yield %0 : tensor<2xf32>
  } : tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// Products and convolutions begin with a contraction, and carry it: text without it is read as if it
// had the one that the region gives. The layout is the type's encoding.

// CHECK-LABEL: func.func @gemm(
// CHECK-NEXT: %y = kernel.gemm (%0 = %a, %1 = %b) {
// CHECK-NEXT: %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
// CHECK-NEXT: kernel.yield %2 : tensor<4x8xf32>
// CHECK-NEXT: } contraction <m [m], n [n], k [k]> : tensor<4x8xf32>
// CHECK-NEXT: func.return %y : tensor<4x8xf32>
func.func @gemm(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) -> tensor<4x8xf32> {
  %y = kernel.gemm (%0 = %a, %1 = %b) {
    %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
    kernel.yield %2 : tensor<4x8xf32>
  } : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @conv(
// CHECK-NEXT: %0 = kernel.loops (%1 = %x) {
// CHECK-NEXT: %2 = algebra.scope (n: 1, c: 3, h: 6, w: 6) %1[n, c, h, w] : tensor<1x3x6x6xf32>
// CHECK-NEXT: kernel.yield %2 : tensor<1x3x6x6xf32>
// CHECK-NEXT: } : tensor<1x3x6x6xf32, #kernel.layout<[0, 2, 3, 1], halo [0, 0, 1, 1], [0, 0, 1, 1]>>
// CHECK-NEXT: %1 = kernel.conv (%2 = %0, %3 = %w) {
// CHECK-NEXT: %4 = algebra.scope (n: 1, f: 8, h: 6, w: 6) sum (c: 3, r: 3, s: 3) %2[n, c, h + r - 1, w + s - 1] * %3[f, c, r, s] : tensor<1x8x6x6xf32>
// CHECK-NEXT: kernel.yield %4 : tensor<1x8x6x6xf32>
// CHECK-NEXT: } contraction <m [h, w], n [f], k [c, r, s], dims "nc01 * fc01 -> nf01", strides [1, 1], dilations [1, 1], pads [1, 1]> : tensor<1x8x6x6xf32, #kernel.layout<[0, 2, 3, 1]>>
// CHECK-NEXT: %y = kernel.loops (%2 = %1) {
// CHECK-NEXT: %3 = algebra.scope (n: 1, c: 8, h: 6, w: 6) %2[n, c, h, w] : tensor<1x8x6x6xf32>
// CHECK-NEXT: kernel.yield %3 : tensor<1x8x6x6xf32>
// CHECK-NEXT: } : tensor<1x8x6x6xf32>
// CHECK-NEXT: func.return %y : tensor<1x8x6x6xf32>
func.func @conv(%x: tensor<1x3x6x6xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x6x6xf32> {
  %0 = kernel.loops (%1 = %x) {
    %2 = algebra.scope (n: 1, c: 3, h: 6, w: 6) %1[n, c, h, w] : tensor<1x3x6x6xf32>
    kernel.yield %2 : tensor<1x3x6x6xf32>
  } : tensor<1x3x6x6xf32, #kernel.layout<[0, 2, 3, 1], halo [0, 0, 1, 1], [0, 0, 1, 1]>>
  %1 = kernel.conv (%2 = %0, %3 = %w) {
    %4 = algebra.scope (n: 1, f: 8, h: 6, w: 6) sum (c: 3, r: 3, s: 3) %2[n, c, h + r - 1, w + s - 1] * %3[f, c, r, s] : tensor<1x8x6x6xf32>
    kernel.yield %4 : tensor<1x8x6x6xf32>
  } : tensor<1x8x6x6xf32, #kernel.layout<[0, 2, 3, 1]>>
  %y = kernel.loops (%2 = %1) {
    %3 = algebra.scope (n: 1, c: 8, h: 6, w: 6) %2[n, c, h, w] : tensor<1x8x6x6xf32>
    kernel.yield %3 : tensor<1x8x6x6xf32>
  } : tensor<1x8x6x6xf32>
  func.return %y : tensor<1x8x6x6xf32>
}

// Operands exchanged, channels last, strides, groups; a transposed convolution with its guard.

// CHECK-LABEL: func.func @conv_orders(
// CHECK: } contraction <batch [f], m [n, h, w], k [c, r, s], operands [1, 0], dims "n01c * 01cf -> n01f", strides [2, 1], dilations [1, 3], pads [0, 1], groups 2> : tensor<2x3x7x2xf32>
// CHECK: } contraction <m [w], n [f], k [c, s], guards [2], dims "nc0 * cf0 -> nf0", strides [2], dilations [1], pads [1], transposed> : tensor<1x2x9xf32>
// GENERIC: <{contraction = #kernel.contraction<batch [3], m [0, 1, 2], k [4, 5, 6], operands [1, 0], dims "n01c * 01cf -> n01f", strides [2, 1], dilations [1, 3], pads [0, 1], groups 2>}>
func.func @conv_orders(%x: tensor<2x7x11x6xf32>, %w: tensor<3x3x3x2xf32>, %u: tensor<1x3x5xf32>, %v: tensor<3x2x3xf32>) {
  %y = kernel.conv (%0 = %w, %1 = %x) {
    %2 = algebra.scope (n: 2, h: 3, w: 7, f: 2) sum (c: 3, r: 3, s: 3) %0[r, s, c, f] * %1[n, 2 * h + r, w + 3 * s - 1, c + 3 * f] : tensor<2x3x7x2xf32>
    kernel.yield %2 : tensor<2x3x7x2xf32>
  } contraction <batch [f], m [n, h, w], k [c, r, s], operands [1, 0], dims "n01c * 01cf -> n01f", strides [2, 1], dilations [1, 3], pads [0, 1], groups 2> : tensor<2x3x7x2xf32>
  %z = kernel.conv (%0 = %u, %1 = %v) {
    %2 = algebra.ones : tensor<1xf32>
    %3 = algebra.scope (n: 1, f: 2, w: 9) sum (c: 3, s: 3) %0[n, c, (w - s + 1) floordiv 2] * %1[c, f, s] * %2[w - s - 2 * ((w - s + 1) floordiv 2) + 1] : tensor<1x2x9xf32>
    kernel.yield %3 : tensor<1x2x9xf32>
  } : tensor<1x2x9xf32>
  func.return
}

// No code runs for views and joins.

// CHECK-LABEL: func.func @view(
// CHECK-NEXT: %y = kernel.view %x : tensor<4x8xf32> to tensor<32xf32>
// CHECK-NEXT: func.return %y : tensor<32xf32>
// GENERIC: "kernel.view"(%x) : (tensor<4x8xf32>) -> tensor<32xf32>
func.func @view(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %y = kernel.view %x : tensor<4x8xf32> to tensor<32xf32>
  func.return %y : tensor<32xf32>
}

// CHECK-LABEL: func.func @part(
// CHECK-NEXT: %y = kernel.view %x : tensor<4x8xf32> to tensor<2x2x3xf32, #kernel.layout<[0, 1, 2], room [0, 0, 1], [0, 0, 4]>>
func.func @part(%x: tensor<4x8xf32>) {
  %y = kernel.view %x : tensor<4x8xf32> to tensor<2x2x3xf32, #kernel.layout<[0, 1, 2], room [0, 0, 1], [0, 0, 4]>>
  func.return
}

// CHECK-LABEL: func.func @join(
// CHECK-NEXT: %y = kernel.join %a, %b axis 1 : i64 offset 64 : i64 : (tensor<1x2x3xf32, #kernel.layout<[0, 2, 1], room [0, 0, 0], [0, 4, 0]>>, tensor<1x4x3xf32, #kernel.layout<[0, 2, 1], room [0, 2, 0], [0, 0, 0]>>) -> tensor<1x6x3xf32, #kernel.layout<[0, 2, 1]>>
// CHECK-NEXT: func.return
func.func @join(%a: tensor<1x2x3xf32, #kernel.layout<[0, 2, 1], room [0, 0, 0], [0, 4, 0]>>, %b: tensor<1x4x3xf32, #kernel.layout<[0, 2, 1], room [0, 2, 0], [0, 0, 0]>>) {
  %y = kernel.join %a, %b axis 1 : i64 offset 64 : i64 : (tensor<1x2x3xf32, #kernel.layout<[0, 2, 1], room [0, 0, 0], [0, 4, 0]>>, tensor<1x4x3xf32, #kernel.layout<[0, 2, 1], room [0, 2, 0], [0, 0, 0]>>) -> tensor<1x6x3xf32, #kernel.layout<[0, 2, 1]>>
  func.return
}

// An op that no scope expresses, by its name.

// CHECK-LABEL: func.func @call(
// CHECK-NEXT: %y = kernel.call "graph.gather"(%x, %i) {axis = 0 : i64} offsets [0 : i64] : (tensor<5x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
// CHECK-NEXT: func.return %y : tensor<2x8xf32>
// GENERIC: "kernel.call"(%x, %i) <{callee = "graph.gather", config = {axis = 0 : i64}, offsets = [0 : i64]}>
func.func @call(%x: tensor<5x8xf32>, %i: tensor<2xi64>) -> tensor<2x8xf32> {
  %y = kernel.call "graph.gather"(%x, %i) {axis = 0 : i64} offsets [0 : i64] : (tensor<5x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}
