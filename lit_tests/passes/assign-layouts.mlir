// RUN: isoform-opt %s --split-input-file -p graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts | filecheck %s

// Convolutions read and write channels last; the input is copied in, with the zeros that padding
// reads around it, and the output is copied out.
// CHECK-LABEL: func.func @main
// CHECK: [[X:%\w+]] = kernel.loops ({{%\w+}} = %x) {
// CHECK: } : tensor<1x3x6x6xf32, #kernel.layout<[0, 2, 3, 1], halo [0, 0, 1, 0], [0, 0, 1, 2]>>
// CHECK-NEXT: %y = kernel.conv ({{%\w+}} = [[X]], {{%\w+}} = %w) {
// CHECK: } contraction <{{.*}}> : tensor<1x8x6x6xf32, #kernel.layout<[0, 2, 3, 1]>>
// CHECK-NEXT: [[Y:%\w+]] = kernel.loops ({{%\w+}} = %y) {
// CHECK: } : tensor<1x8x6x6xf32>
// CHECK-NEXT: func.return [[Y]]
func.func @main(%x: tensor<1x3x6x6xf32>) -> tensor<1x8x6x6xf32> {
  %w = graph.weight @w : tensor<8x3x3x3xf32>
  %y = graph.conv %x, %w {strides = [1, 1], pads = [1, 0, 1, 2], dilations = [1, 1]} : tensor<1x8x6x6xf32>
  func.return %y : tensor<1x8x6x6xf32>
}

// -----

// Loops between convolutions follow; nothing is copied there, and halos grow to the widest need.
// CHECK-LABEL: func.func @main
// CHECK: %a = kernel.conv
// CHECK: } contraction <{{.*}}> : tensor<1x4x6x6xf32, #kernel.layout<[0, 2, 3, 1]>>
// CHECK-NEXT: %p = kernel.loops ({{%\w+}} = %a) {
// CHECK: } : tensor<1x4x3x3xf32, #kernel.layout<[0, 2, 3, 1], halo [0, 0, 2, 2], [0, 0, 2, 2]>>
// CHECK-NEXT: %b = kernel.conv ({{%\w+}} = %p, {{%\w+}} = %v) {
// CHECK: %c = kernel.conv ({{%\w+}} = %p, {{%\w+}} = %u) {
func.func @main(%x: tensor<1x3x6x6xf32>) -> (tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>) {
  %w = graph.weight @w : tensor<4x3x1x1xf32>
  %v = graph.weight @v : tensor<4x4x3x3xf32>
  %u = graph.weight @u : tensor<4x4x5x5xf32>
  %a = graph.conv %x, %w {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x4x6x6xf32>
  %p = graph.max_pool %a {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x4x3x3xf32>
  %b = graph.conv %p, %v {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x4x3x3xf32>
  %c = graph.conv %p, %u {strides = [1, 1], pads = [2, 2, 2, 2], dilations = [1, 1]} : tensor<1x4x3x3xf32>
  func.return %b, %c : tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>
}

// -----

// Constant data that is convolved (with an epilogue that is not constant) is laid out too.
// CHECK-LABEL: func.func @main
// CHECK: [[X:%\w+]] = kernel.loops ({{%\w+}} = %c) {
// CHECK: } : tensor<1x3x4x4xf32, #kernel.layout<[0, 2, 3, 1], halo [0, 0, 1, 1], [0, 0, 1, 1]>>
// CHECK-NEXT: kernel.conv ({{%\w+}} = [[X]], {{%\w+}} = %w, {{%\w+}} = %b) {
func.func @main(%b: tensor<2xf32>) -> tensor<1x2x4x4xf32> {
  %c = graph.weight @c : tensor<1x3x4x4xf32>
  %w = graph.weight @w : tensor<2x3x3x3xf32>
  %y = graph.conv %c, %w, %b {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x2x4x4xf32>
  func.return %y : tensor<1x2x4x4xf32>
}

// -----

// Without convolutions everything stays row-major.
// CHECK-LABEL: func.func @main
// CHECK-NOT: kernel.layout
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %y = graph.matmul %a, %b : tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}
