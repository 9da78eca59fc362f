// RUN: isoform-opt %s -p graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,join-buffers,plan-memory | filecheck %s

// Both convolutions write into the concatenation's buffer, at their own channels: no copy is left,
// and the three values share one range of the arena.
// CHECK-LABEL: func.func @main
// CHECK:       [[A:%\w+]] = kernel.conv {{.*}} offset [[AT:[0-9]+]] : i64
// CHECK:       tensor<1x16x4x4xf32, #kernel.layout<[0, 2, 3, 1], room [0, 0, 0, 0], [0, 8, 0, 0]>>
// CHECK:       [[B:%\w+]] = kernel.conv {{.*}} offset [[AT]] : i64
// CHECK:       tensor<1x8x4x4xf32, #kernel.layout<[0, 2, 3, 1], room [0, 16, 0, 0], [0, 0, 0, 0]>>
// CHECK-NEXT:  kernel.join [[A]], [[B]] axis 1 : i64 offset [[AT]] : i64
func.func @main(%x: tensor<1x4x4x4xf32>) -> tensor<1x24x4x4xf32> {
  %w = graph.weight @w : tensor<16x4x1x1xf32>
  %v = graph.weight @v : tensor<8x4x3x3xf32>
  %a = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x16x4x4xf32>
  %b = graph.conv %x, %v {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x8x4x4xf32>
  %c = graph.concat %a, %b {axis = 1} : tensor<1x24x4x4xf32>
  func.return %c : tensor<1x24x4x4xf32>
}
