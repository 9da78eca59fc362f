// RUN: isoform-opt %s -p canonicalize --split-input-file | filecheck %s

// Ops that change nothing.
// CHECK-LABEL: func.func @main(%x: tensor<2x3xf32>)
// CHECK-NEXT:  func.return %x
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = graph.transpose %x {perm = [0, 1]} : tensor<2x3xf32>
  %1 = graph.reshape %0 {shape = [2, 3]} : tensor<2x3xf32>
  %2 = graph.broadcast %1 {shape = [2, 3], dims = [0, 1]} : tensor<2x3xf32>
  %3 = graph.slice %2 {starts = [0, 0], sizes = [2, 3], steps = [1, 1]} : tensor<2x3xf32>
  %4 = graph.cast %3 {to = f32} : tensor<2x3xf32>
  %5 = graph.pad %4 {pads = [0, 0, 0, 0]} : tensor<2x3xf32>
  %6 = graph.concat %5 {axis = 0} : tensor<2x3xf32>
  %7 = graph.split %6 {axis = 0, sizes = [2]} : tensor<2x3xf32>
  %8 = graph.clip %7 : tensor<2x3xf32>
  %9 = graph.reduce_sum %8 {axes = []} : tensor<2x3xf32>
  func.return %9 : tensor<2x3xf32>
}

// -----

// An op after one of its kind.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:  %0 = graph.relu %x : tensor<2x3xf32>
// CHECK-NEXT:  %1 = graph.transpose %0 {perm = [1, 0]} : tensor<3x2xf32>
// CHECK-NEXT:  %2 = graph.reshape %1 {shape = [6]} : tensor<6xf32>
// CHECK-NEXT:  %3 = graph.slice %2 {starts = [5], sizes = [2], steps = [-2]} : tensor<2xf32>
// CHECK-NEXT:  func.return %3
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %0 = graph.relu %x : tensor<2x3xf32>
  %1 = graph.relu %0 : tensor<2x3xf32>
  %2 = graph.neg %1 : tensor<2x3xf32>
  %3 = graph.neg %2 : tensor<2x3xf32>
  %4 = graph.transpose %3 {perm = [1, 0]} : tensor<3x2xf32>
  %5 = graph.transpose %4 {perm = [1, 0]} : tensor<2x3xf32>
  %6 = graph.transpose %5 {perm = [1, 0]} : tensor<3x2xf32>
  %7 = graph.reshape %6 {shape = [3, 2, 1]} : tensor<3x2x1xf32>
  %8 = graph.reshape %7 {shape = [6]} : tensor<6xf32>
  %9 = graph.slice %8 {starts = [5], sizes = [6], steps = [-1]} : tensor<6xf32>
  %10 = graph.slice %9 {starts = [0], sizes = [2], steps = [2]} : tensor<2xf32>
  func.return %10 : tensor<2xf32>
}

// -----

// All parts of a split, in order; not so in another order.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:  %0, %1 = graph.split %x
// CHECK-NEXT:  %2 = graph.concat %1, %0 {axis = 0}
// CHECK-NEXT:  func.return %x, %2
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0, %1 = graph.split %x {axis = 0, sizes = [2, 2]} : tensor<2xf32>, tensor<2xf32>
  %2 = graph.concat %0, %1 {axis = 0} : tensor<4xf32>
  %3 = graph.concat %1, %0 {axis = 0} : tensor<4xf32>
  func.return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A convolution pads by itself, a product reads transposed.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:  %0 = graph.conv %x, %w {strides = [1, 1], pads = [1, 2, 1, 2], dilations = [1, 1]}
// CHECK-NEXT:  %1 = graph.matmul %a, %a {transpose_b = true}
// CHECK-NEXT:  func.return %0, %1
func.func @main(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x3x3xf32>, %a: tensor<2x3xf32>) -> (tensor<1x1x4x6xf32>, tensor<2x2xf32>) {
  %0 = graph.pad %x {pads = [0, 0, 1, 1, 0, 0, 1, 1]} : tensor<1x1x6x6xf32>
  %1 = graph.conv %0, %w {strides = [1, 1], pads = [0, 1, 0, 1], dilations = [1, 1]} : tensor<1x1x4x6xf32>
  %2 = graph.transpose %a {perm = [1, 0]} : tensor<3x2xf32>
  %3 = graph.matmul %a, %2 : tensor<2x2xf32>
  func.return %1, %3 : tensor<1x1x4x6xf32>, tensor<2x2xf32>
}

// -----

// Neutral operands; adding 0.0 is not one, it turns -0.0 into 0.0.
// CHECK-LABEL: func.func @main
// CHECK:       %z = graph.constant dense<0.000000e+00>
// CHECK-NEXT:  %0 = graph.add %x, %z : tensor<2xf32>
// CHECK-NEXT:  func.return %0
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %o = graph.constant dense<1.0> : tensor<2xf32>
  %z = graph.constant dense<0.0> : tensor<2xf32>
  %0 = graph.mul %x, %o : tensor<2xf32>
  %1 = graph.mul %o, %0 : tensor<2xf32>
  %2 = graph.div %1, %o : tensor<2xf32>
  %3 = graph.sub %2, %z : tensor<2xf32>
  %4 = graph.add %3, %z : tensor<2xf32>
  func.return %4 : tensor<2xf32>
}
