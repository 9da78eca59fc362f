// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,winograd{m=2 tiles=3},fuse-tiles' | filecheck %s
// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,winograd{m=2},fuse-tiles' | filecheck %s --check-prefix APART

// Both transforms and the product between them are one kernel, three tiles at a time.
// CHECK-LABEL: func.func @main
// CHECK:       kernel.tiled_product
// CHECK-SAME:  schedule {tiles = 3 : i64, tile = array<i64: 1, 1, 2, 2>} attributes {isoform.rules = ["winograd-f2"]}
// CHECK-NEXT:  sum (k0: 4)
// CHECK-NEXT:  sum (k0: 4)
// CHECK-NEXT:  sum (k0: 16)
// CHECK-NEXT:  sum (k0: 4)
// CHECK-NEXT:  sum (k0: 4)
// CHECK:       max(
// CHECK:       tensor<1x16x6x7xf32, #kernel.layout<[0, 2, 3, 1]>>
// CHECK-NOT:   kernel.gemm

// A product whose schedule does not say so stays a kernel of its own.
// APART:       kernel.gemm
// APART-NOT:   kernel.tiled_product
func.func @main(%x: tensor<1x16x6x7xf32>) -> tensor<1x16x6x7xf32> {
  %w = graph.weight @w : tensor<16x16x3x3xf32>
  %b = graph.weight @b : tensor<16xf32>
  %y = graph.conv %x, %w, %b {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x16x6x7xf32>
  %z = graph.relu %y : tensor<1x16x6x7xf32>
  func.return %z : tensor<1x16x6x7xf32>
}
