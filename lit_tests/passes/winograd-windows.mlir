// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,winograd{m=4}' | filecheck %s
// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,winograd{m=4 taps=4}' | filecheck %s --check-prefix BLOCKS

// A dim of one tap is not transformed: tiles of 1x4 results, at 1x10 positions.
// CHECK-LABEL: func.func @main
// CHECK:       kernel.loops {{.*}} schedule {tile = array<i64: 1, 1, 1, 1, 1, 10>}
// CHECK-NEXT:  sum (k0: 10)
// CHECK:       tensor<1x16x6x3x1x10xf32, #kernel.layout<[4, 5, 0, 2, 3, 1]>>
// CHECK:       kernel.gemm
// CHECK:       sum (k0: 16)
// CHECK:       [[Z:%\w+]] = kernel.loops {{.*}} schedule {tile = array<i64: 1, 1, 1, 4>} attributes {isoform.rules = ["winograd-f4"]}
// CHECK-NOT:   kernel.conv

// A window of seven taps as the sum of two blocks of four.
// BLOCKS:      kernel.loops {{.*}} schedule {tile = array<i64: 1, 1, 2, 1, 1, 1, 7>}
// BLOCKS:      tensor<1x16x2x6x3x1x7xf32, #kernel.layout<[5, 6, 0, 3, 4, 2, 1]>>
// BLOCKS:      kernel.gemm
// BLOCKS:      sum (k0: 2, k1: 16)
// BLOCKS:      schedule {tile = array<i64: 1, 1, 1, 4>} attributes {isoform.rules = ["winograd-f4-taps4"]}
func.func @main(%x: tensor<1x16x6x9xf32>) -> tensor<1x16x6x9xf32> {
  %w = graph.weight @w : tensor<16x16x1x7xf32>
  %y = graph.conv %x, %w {strides = [1, 1], pads = [0, 3, 0, 3], dilations = [1, 1]} : tensor<1x16x6x9xf32>
  func.return %y : tensor<1x16x6x9xf32>
}
