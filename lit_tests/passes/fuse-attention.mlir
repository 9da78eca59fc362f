// RUN: isoform-opt %s --split-input-file -p graph-to-algebra,algebra-inline-copies,cse,dce,algebra-to-kernel,fuse-kernels,fuse-attention | filecheck %s

// Scores, their softmax and the product with V are one kernel; the transpose behind is where it
// writes. Scores are never stored.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.attention (%0 = %q, %1 = %k, %2 = %v) {
// CHECK-NEXT:   %3 = algebra.scope (b0: 2, m: 16, n: 24) sum (k: 8) %0[b0, m, k] * %1[b0, n, k] : tensor<2x16x24xf32>
// CHECK-NEXT:   %4 = algebra.scope (i0: 2, i1: 16, i2: 1) max (k0: 24) %3[i0, i1, k0] : tensor<2x16x1xf32>
// CHECK-NEXT:   %5 = algebra.scope (i0: 2, i1: 16, i2: 24) exp(%3[i0, i1, i2] - %4[i0, i1, 0]) : tensor<2x16x24xf32>
// CHECK-NEXT:   %6 = algebra.scope (i0: 2, i1: 16, i2: 1) sum (k0: 24) %5[i0, i1, k0] : tensor<2x16x1xf32>
// CHECK-NEXT:   %7 = algebra.scope (i0: 2, i1: 16, i2: 24) %5[i0, i1, i2] / %6[i0, i1, 0] : tensor<2x16x24xf32>
// CHECK-NEXT:   %8 = algebra.scope (b0: 2, m: 16, n: 8) sum (k: 24) %7[b0, m, k] * %2[b0, k, n] : tensor<2x16x8xf32>
// CHECK-NEXT:   %9 = algebra.scope (i0: 16, i1: 16) %8[i1 floordiv 8, i0, i1 - 8 * (i1 floordiv 8)] : tensor<16x16xf32>
// CHECK-NEXT:   kernel.yield %9
// CHECK-NEXT: } : tensor<16x16xf32>
// CHECK-NEXT: func.return %y
func.func @main(%q: tensor<2x16x8xf32>, %k: tensor<2x24x8xf32>, %v: tensor<2x24x8xf32>) -> tensor<16x16xf32> {
  %t = graph.transpose %k {perm = [0, 2, 1]} : tensor<2x8x24xf32>
  %s = graph.matmul %q, %t : tensor<2x16x24xf32>
  %p = graph.softmax %s {axis = 2} : tensor<2x16x24xf32>
  %c = graph.matmul %p, %v : tensor<2x16x8xf32>
  %m = graph.transpose %c {perm = [1, 0, 2]} : tensor<16x2x8xf32>
  %y = graph.reshape %m {shape = [16, 16]} : tensor<16x16xf32>
  func.return %y : tensor<16x16xf32>
}

// -----

// Scores that something else reads are stored, so they are a product of their own.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %s = kernel.gemm
// CHECK: %p = kernel.loops (%0 = %s) {
// CHECK: %y = kernel.gemm (%0 = %p, %1 = %v) {
// CHECK: func.return %y, %s
func.func @main(%q: tensor<16x8xf32>, %k: tensor<8x24xf32>, %v: tensor<24x8xf32>) -> (tensor<16x8xf32>, tensor<16x24xf32>) {
  %s = graph.matmul %q, %k : tensor<16x24xf32>
  %p = graph.softmax %s {axis = 1} : tensor<16x24xf32>
  %y = graph.matmul %p, %v : tensor<16x8xf32>
  func.return %y, %s : tensor<16x8xf32>, tensor<16x24xf32>
}

// -----

// So are products with weights, which are packed when the program is compiled.
// CHECK-LABEL: func.func @main
// CHECK: %h = kernel.gemm
// CHECK: %y = kernel.gemm
func.func @main(%x: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %a = graph.weight @a : tensor<8x24xf32>
  %b = graph.weight @b : tensor<24x8xf32>
  %s = graph.matmul %x, %a : tensor<16x24xf32>
  %h = graph.relu %s : tensor<16x24xf32>
  %y = graph.matmul %h, %b : tensor<16x8xf32>
  func.return %y : tensor<16x8xf32>
}

// -----

// A softmax over the queries is not a row of scores.
// CHECK-LABEL: func.func @main
// CHECK: kernel.gemm
// CHECK: kernel.loops
// CHECK: kernel.gemm
func.func @main(%q: tensor<16x8xf32>, %k: tensor<8x16xf32>, %v: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %s = graph.matmul %q, %k : tensor<16x16xf32>
  %p = graph.softmax %s {axis = 0} : tensor<16x16xf32>
  %y = graph.matmul %p, %v : tensor<16x8xf32>
  func.return %y : tensor<16x8xf32>
}
