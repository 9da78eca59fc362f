// RUN: isoform-opt %s --split-input-file -p graph-to-algebra,algebra-inline-copies,cse,dce,algebra-to-kernel,fuse-kernels | filecheck %s

// What follows a product point by point is its epilogue.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %z = kernel.gemm (%0 = %a, %1 = %b, %2 = %c) {
// CHECK-NEXT:   %3 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
// CHECK-NEXT:   %4 = algebra.scope (i0: 4, i1: 8) %3[i0, i1] + %2[i1] : tensor<4x8xf32>
// CHECK-NEXT:   %5 = algebra.scope (i0: 4, i1: 8) max(%4[i0, i1], 0.0) : tensor<4x8xf32>
// CHECK-NEXT:   kernel.yield %5 : tensor<4x8xf32>
// CHECK-NEXT: } contraction <m [m], n [n], k [k]> : tensor<4x8xf32>
// CHECK-NEXT: func.return %z
func.func @main(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>, %c: tensor<8xf32>) -> tensor<4x8xf32> {
  %x = graph.matmul %a, %b : tensor<4x8xf32>
  %d = graph.broadcast %c {shape = [4, 8], dims = [1]} : tensor<4x8xf32>
  %y = graph.add %x, %d : tensor<4x8xf32>
  %z = graph.relu %y : tensor<4x8xf32>
  func.return %z : tensor<4x8xf32>
}

// -----

// A value that something else reads is stored; so is one that the program returns.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops (%0 = %x) {
// CHECK: %z = kernel.loops (%0 = %y) {
// CHECK: func.return %z, %y
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %y = graph.exp %x : tensor<4x8xf32>
  %z = graph.relu %y : tensor<4x8xf32>
  func.return %z, %y : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Softmax along rows shares its rows: one kernel.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops (%0 = %x) {
// CHECK-NEXT:   %1 = algebra.scope (i0: 8, i1: 1) max (k0: 16) %0[i0, k0] : tensor<8x1xf32>
// CHECK-NEXT:   %2 = algebra.scope (i0: 8, i1: 16) exp(%0[i0, i1] - %1[i0, 0]) : tensor<8x16xf32>
// CHECK-NEXT:   %3 = algebra.scope (i0: 8, i1: 1) sum (k0: 16) %2[i0, k0] : tensor<8x1xf32>
// CHECK-NEXT:   %4 = algebra.scope (i0: 8, i1: 16) %2[i0, i1] / %3[i0, 0] : tensor<8x16xf32>
// CHECK-NEXT:   kernel.yield %4
// CHECK-NEXT: } : tensor<8x16xf32>
// CHECK-NEXT: func.return %y
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = graph.softmax %x {axis = 1} : tensor<8x16xf32>
  func.return %y : tensor<8x16xf32>
}

// -----

// A reader at other positions than its own does not fuse: points would be computed again.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops
// CHECK: %z = kernel.loops (%0 = %y) {
func.func @main(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x7x7xf32> {
  %y = graph.exp %x : tensor<1x2x8x8xf32>
  %z = graph.max_pool %y {kernel = [2, 2], strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x2x7x7xf32>
  func.return %z : tensor<1x2x7x7xf32>
}

// -----

// A read that leaves an extent-1 dim finds 0 there; a fused value has no element there.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops
// CHECK: %z = kernel.loops (%0 = %y) {
func.func @main(%x: tensor<4x1x1xf32>) -> tensor<4x1x2xf32> {
  %y = graph.exp %x : tensor<4x1x1xf32>
  %p = graph.pad %y {pads = [0, 0, 1, 0, 0, 0]} : tensor<4x1x2xf32>
  %z = graph.add %p, %p : tensor<4x1x2xf32>
  func.return %z : tensor<4x1x2xf32>
}

// -----

// The templates store float32: an epilogue does not end in another type.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %x = kernel.gemm (%0 = %a, %1 = %b) {
// CHECK: %y = kernel.loops (%0 = %x) {
func.func @main(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) -> tensor<4x8xi1> {
  %x = graph.matmul %a, %b : tensor<4x8xf32>
  %y = graph.is_nan %x : tensor<4x8xi1>
  func.return %y : tensor<4x8xi1>
}

// -----

// Neither does a kernel whose first scope reads at other positions and whose last one does not.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops
// CHECK: %z = kernel.loops (%0 = %y) {
// CHECK-NEXT: sum (k0: 5) %0[i0, i1 + k0 - 2, i2, i3] * %0[i0, i1 + k0 - 2, i2, i3]
func.func @main(%x: tensor<1x8x3x3xf32>) -> tensor<1x8x3x3xf32> {
  %y = graph.relu %x : tensor<1x8x3x3xf32>
  %z = graph.lrn %y {size = 5} : tensor<1x8x3x3xf32>
  func.return %z : tensor<1x8x3x3xf32>
}

// -----

// A band's product with long sums is computed a block of rows at a time, alone.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %s = kernel.loops (%0 = %q, %1 = %k) {
// CHECK-NEXT:   sum (k: 32)
// CHECK-NEXT:   kernel.yield
// CHECK: %y = kernel.loops (%0 = %s) {
// CHECK-NEXT:   max (k0: 17)
func.func @main(%q: tensor<2x24x32xf32>, %k: tensor<2x24x32xf32>) -> tensor<2x24x17xf32> {
  %s = graph.g2bmm %q, %k {width = 8} : tensor<2x24x17xf32>
  %y = graph.softmax %s {axis = 2} : tensor<2x24x17xf32>
  func.return %y : tensor<2x24x17xf32>
}

// -----

// One with short sums shares its rows with the softmax: storing scores would cost more.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops (%0 = %q, %1 = %k) {
// CHECK-NEXT:   sum (k: 8)
// CHECK-NEXT:   max (k0: 17)
func.func @main(%q: tensor<2x24x8xf32>, %k: tensor<2x24x8xf32>) -> tensor<2x24x17xf32> {
  %s = graph.g2bmm %q, %k {width = 8} : tensor<2x24x17xf32>
  %y = graph.softmax %s {axis = 2} : tensor<2x24x17xf32>
  func.return %y : tensor<2x24x17xf32>
}

// -----

// Three positions fill no vector: the product is no faster alone, however long its sums.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %y = kernel.loops (%0 = %q, %1 = %k) {
// CHECK-NEXT:   sum (k: 32)
func.func @main(%q: tensor<2x24x32xf32>, %k: tensor<2x24x32xf32>) -> tensor<2x24x3xf32> {
  %s = graph.g2bmm %q, %k {width = 1} : tensor<2x24x3xf32>
  %y = graph.softmax %s {axis = 2} : tensor<2x24x3xf32>
  func.return %y : tensor<2x24x3xf32>
}

// -----

// A sum of weights is computed once, when the program is compiled: what reads data does not take it.
// CHECK-LABEL: func.func @main
// CHECK: [[S:%\w+]] = kernel.loops ({{%\w+}} = %w) {
// CHECK: algebra.scope (i0: 8) sum (k0: 16)
// CHECK: } : tensor<8xf32>
// CHECK: kernel.loops ({{%\w+}} = {{%\w+}}, {{%\w+}} = {{%\w+}}) {
// CHECK-NOT: sum
// CHECK: func.return
func.func @main(%z: tensor<8xf32>) -> tensor<8xf32> {
  %w = graph.weight @w : tensor<16x8xf32>
  %s = graph.reduce_sum %w {axes = [0], keep_dims = false} : tensor<8xf32>
  %y = graph.mul %z, %s : tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// -----

// An enlarged image is no product: it goes into the sum first, and both into the product.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %z = kernel.gemm (%0 = %a, %1 = %b, %2 = %c) {
// CHECK-NEXT:   algebra.scope (m: 4, n: 8) sum (k: 16)
// CHECK-NEXT:   algebra.scope (i0: 4, i1: 8) %2[i0 floordiv 2, i1]
// CHECK-NEXT:   algebra.scope (i0: 4, i1: 8) {{.*}} + {{.*}}
// CHECK-NEXT:   kernel.yield
// CHECK-NEXT: } contraction
// CHECK-NEXT: func.return %z
func.func @main(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>, %c: tensor<2x8xf32>) -> tensor<4x8xf32> {
  %x = graph.matmul %a, %b : tensor<4x8xf32>
  %d = graph.broadcast %c {shape = [2, 2, 8], dims = [0, 2]} : tensor<2x2x8xf32>
  %y = graph.reshape %d {shape = [4, 8]} : tensor<4x8xf32>
  %z = graph.add %x, %y : tensor<4x8xf32>
  func.return %z : tensor<4x8xf32>
}
