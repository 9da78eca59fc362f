// RUN: isoform-opt %s --split-input-file -p skip-padding | filecheck %s

// Every second row of %a is read; of %b those that a mask chooses, of %c, in place of the others, all.
// CHECK-LABEL: func.func @main
// CHECK:         %m = kernel.loops (%0 = %i, %1 = %size.n) {
// CHECK:         %a = kernel.loops (%0 = %x) {
// CHECK:         %b = kernel.loops (%0 = %x, {{.*}} = %size.n) rows array<i64: 0, 1> {
// CHECK:         %c = kernel.loops (%0 = %x) {
// CHECK:         %p = kernel.loops ({{.*}} = %size.n) rows array<i64: 0, 1> {
// CHECK:         %q = kernel.loops (%0 = %m, %1 = %b, %2 = %c) {
func.func @main(%x: tensor<8x2xf32> {isoform.name = "x"}, %size.n: tensor<i64> {isoform.name = "size.n"})
    -> (tensor<4x2xf32>, tensor<8x2xf32>) attributes {isoform.rows = [["n", ""], ["", ""]]} {
  %i = graph.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi64>
  %m = kernel.loops (%0 = %i, %1 = %size.n) {
    %2 = algebra.scope (i0: 8) lt(%0[i0], %1[]) : tensor<8xi1>
    kernel.yield %2 : tensor<8xi1>
  } : tensor<8xi1>
  %a = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i0: 8, i1: 2) exp(%0[i0, i1]) : tensor<8x2xf32>
    kernel.yield %1 : tensor<8x2xf32>
  } : tensor<8x2xf32>
  %b = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i0: 8, i1: 2) tanh(%0[i0, i1]) : tensor<8x2xf32>
    kernel.yield %1 : tensor<8x2xf32>
  } : tensor<8x2xf32>
  %c = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i0: 8, i1: 2) sin(%0[i0, i1]) : tensor<8x2xf32>
    kernel.yield %1 : tensor<8x2xf32>
  } : tensor<8x2xf32>
  %p = kernel.loops (%0 = %a) {
    %1 = algebra.scope (i0: 4, i1: 2) cos(%0[2 * i0, i1]) : tensor<4x2xf32>
    kernel.yield %1 : tensor<4x2xf32>
  } : tensor<4x2xf32>
  %q = kernel.loops (%0 = %m, %1 = %b, %2 = %c) {
    %3 = algebra.scope (i0: 8, i1: 2) select(%0[i0], %1[i0, i1], %2[i0, i1]) : tensor<8x2xf32>
    kernel.yield %3 : tensor<8x2xf32>
  } : tensor<8x2xf32>
  func.return %p, %q : tensor<4x2xf32>, tensor<8x2xf32>
}

// -----

// Through a view, the dims that both shapes have. What a mask of other numbers chooses is all read.
// CHECK-LABEL: func.func @main
// CHECK:         %a = kernel.loops (%0 = %x, {{.*}} = %size.n) rows array<i64: 1, 1> {
// CHECK:         %b = kernel.loops (%0 = %x) {
func.func @main(%x: tensor<1x8x4xf32> {isoform.name = "x"}, %size.n: tensor<i64> {isoform.name = "size.n"})
    -> (tensor<8x2x2xf32>, tensor<1x8x4xf32>) attributes {isoform.rows = [["n", "", ""], ["", "", ""]]} {
  %i = graph.constant dense<[0, 1, 2, 3, 4, 5, 7, 6]> : tensor<8xi64>
  %m = kernel.loops (%0 = %i, %1 = %size.n) {
    %2 = algebra.scope (i0: 8) lt(%0[i0], %1[]) : tensor<8xi1>
    kernel.yield %2 : tensor<8xi1>
  } : tensor<8xi1>
  %a = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i0: 1, i1: 8, i2: 4) exp(%0[i0, i1, i2]) : tensor<1x8x4xf32>
    kernel.yield %1 : tensor<1x8x4xf32>
  } : tensor<1x8x4xf32>
  %b = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i0: 1, i1: 8, i2: 4) tanh(%0[i0, i1, i2]) : tensor<1x8x4xf32>
    kernel.yield %1 : tensor<1x8x4xf32>
  } : tensor<1x8x4xf32>
  %v = kernel.view %a : tensor<1x8x4xf32> to tensor<8x2x2xf32>
  %q = kernel.loops (%0 = %m, %1 = %b) {
    %2 = algebra.scope (i0: 1, i1: 8, i2: 4) select(%0[i1], %1[i0, i1, i2], 0.0) : tensor<1x8x4xf32>
    kernel.yield %2 : tensor<1x8x4xf32>
  } : tensor<1x8x4xf32>
  func.return %v, %q : tensor<8x2x2xf32>, tensor<1x8x4xf32>
}
