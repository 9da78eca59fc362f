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

// Templates begin with the contraction they stand for; the layout is the type's encoding.

// CHECK-LABEL: func.func @gemm(
// CHECK-NEXT: %y = kernel.gemm (%0 = %a, %1 = %b) {
// CHECK-NEXT: %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
// CHECK-NEXT: kernel.yield %2 : tensor<4x8xf32>
// CHECK-NEXT: } : tensor<4x8xf32>
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
// CHECK-NEXT: } : tensor<1x8x6x6xf32, #kernel.layout<[0, 2, 3, 1]>>
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

// No code runs for views and joins.

// CHECK-LABEL: func.func @view(
// CHECK-NEXT: %y = kernel.view %x : tensor<4x8xf32> to tensor<32xf32>
// CHECK-NEXT: func.return %y : tensor<32xf32>
// GENERIC: "kernel.view"(%x) : (tensor<4x8xf32>) -> tensor<32xf32>
func.func @view(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %y = kernel.view %x : tensor<4x8xf32> to tensor<32xf32>
  func.return %y : tensor<32xf32>
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
