// RUN: isoform-opt %s --split-input-file -p graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,transposed-product | filecheck %s

// All taps of a position are columns of one product; each result sums the four that land on it.
// CHECK-LABEL: func.func @main
// CHECK:       kernel.gemm
// CHECK-NEXT:  algebra.scope (i0: 1, i1: 6, i2: 7, i3: 3, i4: 4, i5: 4) sum (k0: 8)
// CHECK:       tensor<1x6x7x3x4x4xf32>
// CHECK:       kernel.loops
// CHECK-SAME:  attributes {isoform.rules = ["transposed-product"]}
// CHECK-NEXT:  algebra.scope (i0: 1, i1: 3, i2: 12, i3: 14) sum (k0: 2, k1: 2)
// CHECK-NEXT:  max(
// CHECK-NOT:   kernel.conv
func.func @main(%x: tensor<1x8x6x7xf32>) -> tensor<1x3x12x14xf32> {
  %w = graph.weight @w : tensor<8x3x4x4xf32>
  %y = graph.conv_transpose %x, %w {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], output_padding = [0, 0]} : tensor<1x3x12x14xf32>
  %z = graph.relu %y : tensor<1x3x12x14xf32>
  func.return %z : tensor<1x3x12x14xf32>
}

// -----

// Any other convolution stays.
// CHECK-LABEL: func.func @main
// CHECK:       kernel.conv
// CHECK-NOT:   kernel.gemm
func.func @main(%x: tensor<1x8x6x7xf32>) -> tensor<1x3x6x7xf32> {
  %w = graph.weight @w : tensor<3x8x3x3xf32>
  %y = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x3x6x7xf32>
  func.return %y : tensor<1x3x6x7xf32>
}
