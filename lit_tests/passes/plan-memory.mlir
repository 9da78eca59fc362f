// RUN: isoform-opt %s --split-input-file -p plan-memory | filecheck %s

// A buffer whose last reader has run makes room for the next; offsets are multiples of 64 bytes.
// CHECK: builtin.module attributes {isoform.arena_bytes = 128 : i64}
// CHECK-LABEL: func.func @main
// CHECK: %a = kernel.loops (%0 = %x) offset [[A:[0-9]+]] : i64 {
// CHECK: %b = kernel.loops (%0 = %a) offset {{[0-9]+}} : i64 {
// CHECK: %c = kernel.loops (%0 = %b) offset [[A]] : i64 {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i: 4) exp(%0[i]) : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  %b = kernel.loops (%0 = %a) {
    %1 = algebra.scope (i: 4) %0[-i + 3] : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  %c = kernel.loops (%0 = %b) {
    %1 = algebra.scope (i: 4) exp(%0[i]) : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----

// A view keeps its source's buffer alive: three values, none may share.
// CHECK: builtin.module attributes {isoform.arena_bytes = 192 : i64}
// CHECK-LABEL: func.func @main
// CHECK: %a = kernel.loops (%0 = %x) offset [[A:[0-9]+]] : i64 {
// CHECK: %v = kernel.view %a : tensor<4xf32> to tensor<2x2xf32>
// CHECK: func.return %b, %c, %v
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>) {
  %a = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i: 4) exp(%0[i]) : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  %v = kernel.view %a : tensor<4xf32> to tensor<2x2xf32>
  %b = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i: 4) tanh(%0[i]) : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  %c = kernel.loops (%0 = %b) {
    %1 = algebra.scope (i: 4) tanh(%0[i]) : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  func.return %b, %c, %v : tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>
}

// -----

// What depends on weights alone is evaluated at compile time and has no offset; a call has one for
// each result, and a halo takes room.
// CHECK: builtin.module attributes {isoform.arena_bytes = 256 : i64}
// CHECK-LABEL: func.func @main
// CHECK: %k = kernel.loops (%0 = %w) {
// CHECK: %g = kernel.call "graph.gather"(%k, %i) {axis = 0 : i64} offsets [{{[0-9]+}} : i64] :
// CHECK: %h = kernel.loops (%0 = %g) offset {{[0-9]+}} : i64 {
func.func @main(%i: tensor<2xi64>) -> tensor<2x4xf32> {
  %w = graph.weight @w : tensor<5x4xf32>
  %k = kernel.loops (%0 = %w) {
    %1 = algebra.scope (i: 5, j: 4) exp(%0[i, j]) : tensor<5x4xf32>
    kernel.yield %1 : tensor<5x4xf32>
  } : tensor<5x4xf32>
  %g = kernel.call "graph.gather"(%k, %i) {axis = 0 : i64} : (tensor<5x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %h = kernel.loops (%0 = %g) {
    %1 = algebra.scope (i: 2, j: 4) exp(%0[i, j]) : tensor<2x4xf32>
    kernel.yield %1 : tensor<2x4xf32>
  } : tensor<2x4xf32, #kernel.layout<[0, 1], halo [0, 8], [0, 8]>>
  %y = kernel.loops (%0 = %h) {
    %1 = algebra.scope (i: 2, j: 4) %0[i, j] : tensor<2x4xf32>
    kernel.yield %1 : tensor<2x4xf32>
  } : tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}
