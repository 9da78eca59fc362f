// RUN: isoform-opt %s -p graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,winograd{m=2} | filecheck %s

// A 3x3 convolution of stride 1 becomes three kernels; its epilogue follows the inverse transform.
// The data gets a halo that tiles hanging over the ragged edge read too.
// CHECK-LABEL: func.func @main
// CHECK:       [[X:%\w+]] = kernel.loops (%{{\w+}} = %x)
// CHECK:       tensor<1x16x6x7xf32, #kernel.layout<[0, 2, 3, 1], halo [0, 0, 1, 1], [0, 0, 1, 2]>>
// CHECK:       kernel.loops (%{{\w+}} = [[X]], %{{\w+}} = %{{\w+}}) schedule {tile = array<i64: 1, 1, 1, 1, 4, 4>}
// CHECK:       tensor<1x16x3x4x4x4xf32, #kernel.layout<[4, 5, 0, 2, 3, 1]>>
// CHECK:       kernel.loops (%{{\w+}} = %w
// CHECK:       kernel.gemm
// CHECK:       sum (k0: 16)
// CHECK:       [[Z:%\w+]] = kernel.loops {{.*}} schedule {tile = array<i64: 1, 1, 2, 2>} attributes {isoform.rules = ["winograd-f2"]}
// CHECK:       max(
// CHECK:       tensor<1x16x6x7xf32, #kernel.layout<[0, 2, 3, 1]>>
// CHECK-NOT:   kernel.conv
func.func @main(%x: tensor<1x16x6x7xf32>) -> tensor<1x16x6x7xf32> {
  %w = graph.weight @w : tensor<16x16x3x3xf32>
  %b = graph.weight @b : tensor<16xf32>
  %y = graph.conv %x, %w, %b {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x16x6x7xf32>
  %z = graph.relu %y : tensor<1x16x6x7xf32>
  func.return %z : tensor<1x16x6x7xf32>
}
