// RUN: isoform-opt %s -p graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,join-buffers | filecheck %s

// A part that is an input, or stands twice, or is read with a halo elsewhere, is copied.
// CHECK-NOT: kernel.join
func.func @main(%x: tensor<1x4x4x4xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x8x4x4xf32>) {
  %w = graph.weight @w : tensor<4x4x3x3xf32>
  %a = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x4x4x4xf32>
  %b = graph.conv %a, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x4x4x4xf32>
  %c = graph.concat %a, %b {axis = 1} : tensor<1x8x4x4xf32>
  %d = graph.concat %x, %b {axis = 1} : tensor<1x8x4x4xf32>
  %e = graph.concat %b, %b {axis = 1} : tensor<1x8x4x4xf32>
  func.return %c, %d, %b, %e : tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x8x4x4xf32>
}
