// RUN: isoform-opt %s -p fold-batch-norm --split-input-file | filecheck %s

// The convolution's own result is needed too.
// CHECK-LABEL: func.func @main
// CHECK:       graph.batch_norm
func.func @main(%x: tensor<1x4x6x6xf32>) -> (tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>) {
  %w = graph.weight @w : tensor<4x4x1x1xf32>
  %s = graph.weight @s : tensor<4xf32>
  %c = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x4x6x6xf32>
  %y = graph.batch_norm %c, %s, %s, %s, %s : tensor<1x4x6x6xf32>
  func.return %c, %y : tensor<1x4x6x6xf32>, tensor<1x4x6x6xf32>
}

// -----

// The scale is only known when the program runs: scaling weights would then cost time.
// CHECK-LABEL: func.func @main
// CHECK:       graph.batch_norm
func.func @main(%x: tensor<1x4x6x6xf32>, %s: tensor<4xf32>) -> tensor<1x4x6x6xf32> {
  %w = graph.weight @w : tensor<4x4x1x1xf32>
  %b = graph.weight @b : tensor<4xf32>
  %c = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x4x6x6xf32>
  %y = graph.batch_norm %c, %s, %b, %b, %b : tensor<1x4x6x6xf32>
  func.return %y : tensor<1x4x6x6xf32>
}
