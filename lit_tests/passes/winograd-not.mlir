// RUN: isoform-opt %s -p graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,winograd{m=4} | filecheck %s

// Strides, dilations, narrow groups and windows of one tap are left alone.
// CHECK-COUNT-4: kernel.conv
// CHECK-NOT:     kernel.gemm
func.func @main(%x: tensor<1x16x8x8xf32>) -> (tensor<1x16x4x4xf32>, tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) {
  %w = graph.weight @w : tensor<16x16x3x3xf32>
  %g = graph.weight @g : tensor<16x4x3x3xf32>
  %one = graph.weight @one : tensor<16x16x1x1xf32>
  %a = graph.conv %x, %w {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x16x4x4xf32>
  %b = graph.conv %x, %w {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [2, 2]} : tensor<1x16x8x8xf32>
  %c = graph.conv %x, %g {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 4} : tensor<1x16x8x8xf32>
  %d = graph.conv %x, %one {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x16x8x8xf32>
  func.return %a, %b, %c, %d : tensor<1x16x4x4xf32>, tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>
}
