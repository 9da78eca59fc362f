// RUN: isoform-opt %s | isoform-opt | filecheck %s
// RUN: isoform-opt %s --print-op-generic | isoform-opt | filecheck %s
// RUN: isoform-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// The text is the mathematics: traversal iterators, summations, reads.

// CHECK-LABEL: func.func @conv(
// CHECK-NEXT: %y = algebra.scope (n: 1, f: 8, h: 6, w: 6) sum (c: 4, r: 3, s: 3) %x[n, c, h + r - 1, w + s - 1] * %k[f, c, r, s] : tensor<1x8x6x6xf32>
func.func @conv(%x: tensor<1x4x6x6xf32>, %k: tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32> {
  %y = algebra.scope (n: 1, f: 8, h: 6, w: 6) sum (c: 4, r: 3, s: 3)
         %x[n, c, h + r - 1, w + s - 1] * %k[f, c, r, s] : tensor<1x8x6x6xf32>
  func.return %y : tensor<1x8x6x6xf32>
}

// One operand per read, one map per operand; the body is a region of arith and math ops.

// CHECK-LABEL: func.func @matmul(
// CHECK-NEXT: %y = algebra.scope (m: 4, n: 5) sum (k: 3) %a[m, k] * %b[k, n] : tensor<4x5xf32>
// GENERIC: "algebra.scope"(%a, %b) <{iterators = ["m", "n", "k"], sums = array<i64: 3>, reduction = "sum", maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>], outside = [0.000000e+00 : f64, 0.000000e+00 : f64]}> ({
// GENERIC: "arith.mulf"
// GENERIC: "algebra.yield"
func.func @matmul(%a: tensor<4x3xf32>, %b: tensor<3x5xf32>) {
  %y = algebra.scope (m: 4, n: 5) sum (k: 3) %a[m, k] * %b[k, n] : tensor<4x5xf32>
  func.return
}

// CHECK-LABEL: func.func @reductions(
// CHECK-NEXT: algebra.scope (a: 4) max (k: 6) %x[a, k] else -inf : tensor<4xf32>
// CHECK-NEXT: algebra.scope (a: 4) min (k: 6) %x[a, k] else inf : tensor<4xf32>
// CHECK-NEXT: algebra.scope () prod (k: 4) %x[k, k] else 1.0 : tensor<f32>
// CHECK-NEXT: algebra.scope (a: 4) max (k: 6) max(%x[a, k], 0.0) : tensor<4xf32>
func.func @reductions(%x: tensor<4x6xf32>) {
  %0 = algebra.scope (a: 4) max (k: 6) %x[a, k] else -inf : tensor<4xf32>
  %1 = algebra.scope (a: 4) min (k: 6) %x[a, k] else inf : tensor<4xf32>
  %2 = algebra.scope () prod (k: 4) %x[k, k] else 1.0 : tensor<f32>
  %3 = algebra.scope (a: 4) max (k: 6) max(%x[a, k], 0.0) : tensor<4xf32>
  func.return
}

// Indices are brought to normal form: there is no mod, and what cancels is gone.

// CHECK-LABEL: func.func @indices(
// CHECK-NEXT: algebra.scope (a: 8) %x[a floordiv 4, a - 4 * (a floordiv 4)] : tensor<8xf32>
// CHECK-NEXT: algebra.scope (a: 8) %x[0, a] : tensor<8xf32>
// CHECK-NEXT: algebra.scope (a: 2, b: 2) %x[(2 * a + b + 1) floordiv 3, -a - b + 3] : tensor<2x2xf32>
// CHECK-NEXT: algebra.scope (a: 8) %x[a floordiv 6, 0] : tensor<8xf32>
func.func @indices(%x: tensor<2x4xf32>) {
  %0 = algebra.scope (a: 8) %x[a floordiv 4, a mod 4] : tensor<8xf32>
  %1 = algebra.scope (a: 8) %x[0, 4 * (a floordiv 4) + a mod 4] : tensor<8xf32>
  %2 = algebra.scope (a: 2, b: 2) %x[(a * 2 + 1 + b) floordiv 3, 3 - (a + b)] : tensor<2x2xf32>
  %3 = algebra.scope (a: 8) %x[a floordiv 2 floordiv 3, 0] : tensor<8xf32>
  func.return
}

// CHECK-LABEL: func.func @bodies(
// CHECK-NEXT: algebra.scope (a: 4) neg(%x[a]) / (%x[a] - 1.5) : tensor<4xf32>
// CHECK-NEXT: algebra.scope (a: 4) 1.0 / (1.0 + exp(neg(%x[a]))) : tensor<4xf32>
// CHECK-NEXT: algebra.scope (a: 4) select(lt(%x[a], 0.0), %x[a] * 0.25, %x[a]) : tensor<4xf32>
// CHECK-NEXT: algebra.scope (a: 4) select(%p[a], %x[a + 1], nan) : tensor<4xf32>
// CHECK-NEXT: algebra.scope (a: 4) f32(%i[a]) * 0.5 : tensor<4xf32>
// CHECK-NEXT: algebra.scope (a: 4) i32(%x[a]) + %i[a] : tensor<4xi32>
// CHECK-NEXT: algebra.scope (a: 4) xor(%p[a], true) : tensor<4xi1>
// CHECK-NEXT: algebra.scope (a: 4) 3.0 : tensor<4xf32>
// CHECK-NEXT: algebra.scope (a: 4) %x[a] attributes {isoform.rules = ["identity"]} : tensor<4xf32>
func.func @bodies(%x: tensor<4xf32>, %i: tensor<4xi32>, %p: tensor<4xi1>) {
  %0 = algebra.scope (a: 4) -%x[a] / (%x[a] - 1.5) : tensor<4xf32>
  %1 = algebra.scope (a: 4) 1.0 / (1.0 + exp(neg(%x[a]))) : tensor<4xf32>
  %2 = algebra.scope (a: 4) select(lt(%x[a], 0.0), %x[a] * 0.25, %x[a]) : tensor<4xf32>
  %3 = algebra.scope (a: 4) select(%p[a], %x[a + 1], nan) : tensor<4xf32>
  %4 = algebra.scope (a: 4) f32(%i[a]) * 0.5 : tensor<4xf32>
  %5 = algebra.scope (a: 4) i32(%x[a]) + %i[a] : tensor<4xi32>
  %6 = algebra.scope (a: 4) xor(%p[a], true) : tensor<4xi1>
  %7 = algebra.scope (a: 4) 3.0 : tensor<4xf32>
  %8 = algebra.scope (a: 4) %x[a] attributes {isoform.rules = ["identity"]} : tensor<4xf32>
  func.return
}

// A body may be given as a region, over named reads; a small one prints as an expression.

// CHECK-LABEL: func.func @region(
// CHECK-NEXT: %y = algebra.scope (a: 4) %x[a] * %x[a] + %x[-a + 3] : tensor<4xf32>
func.func @region(%x: tensor<4xf32>) {
  %y = algebra.scope (a: 4) [%x[a], %x[3 - a]] {
  ^bb0(%p: f32, %q: f32):
    %square = arith.mulf %p, %p : f32
    %sum = arith.addf %square, %q : f32
    algebra.yield %sum : f32
  } : tensor<4xf32>
  func.return
}

// A read of ones is the Iverson bracket of "inside": here, of an even a.

// CHECK-LABEL: func.func @guard(
// CHECK-NEXT: %one = algebra.ones : tensor<1xf32>
// CHECK-NEXT: %y = algebra.scope (a: 8) %x[a floordiv 2] * %one[a - 2 * (a floordiv 2)] : tensor<8xf32>
func.func @guard(%x: tensor<4xf32>) {
  %one = algebra.ones : tensor<1xf32>
  %y = algebra.scope (a: 8) %x[a floordiv 2] * %one[a mod 2] : tensor<8xf32>
  func.return
}

// What no scope expresses passes through, uninterpreted.

// CHECK-LABEL: func.func @extern(
// CHECK-NEXT: %y = algebra.extern "graph.gather"(%x, %i) {axis = 0 : i64} : (tensor<5x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
func.func @extern(%x: tensor<5x2xf32>, %i: tensor<3xi64>) {
  %y = algebra.extern "graph.gather"(%x, %i) {axis = 0 : i64}
         : (tensor<5x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  func.return
}

// CHECK-LABEL: func.func @rank_0_and_empty(
// CHECK-NEXT: algebra.scope () %s[] + 1.0 : tensor<f32>
// CHECK-NEXT: algebra.scope (a: 0) %s[] : tensor<0xf32>
func.func @rank_0_and_empty(%s: tensor<f32>) {
  %0 = algebra.scope () %s[] + 1.0 : tensor<f32>
  %1 = algebra.scope (a: 0) %s[] : tensor<0xf32>
  func.return
}
