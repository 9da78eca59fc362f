// With quick effort nothing is measured and nothing changes.
// RUN: isoform-opt %s -p graph-to-algebra,algebra-to-kernel,assign-layouts,tune{effort=quick} | filecheck %s
// An effort that does not exist is one clear line.
// RUN: not isoform-opt %s -p tune{effort=huge} 2>&1 | filecheck %s --check-prefix ERROR
// ERROR: tune: unknown effort 'huge': expected quick, default, max

// CHECK-LABEL: func.func @main
// CHECK:       kernel.conv
// CHECK-NOT:   kernel.gemm
func.func @main(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = graph.weight @w : tensor<16x16x3x3xf32>
  %y = graph.conv %x, %w {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x16x8x8xf32>
  func.return %y : tensor<1x16x8x8xf32>
}
