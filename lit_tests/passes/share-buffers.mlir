// RUN: isoform-opt %s --split-input-file -p graph-to-algebra,algebra-inline-copies,dce,algebra-to-kernel,share-buffers | filecheck %s

// The parts of a product's columns are where the product put them, under another shape too.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  -> (tensor<6x3xf32, #kernel.layout<[0, 1], room [0, 0], [0, 4]>>, tensor<2x3x4xf32, #kernel.layout<[0, 1, 2], room [0, 0, 3], [0, 0, 0]>>)
// CHECK:       [[Y:%\w+]] = kernel.gemm
// CHECK-NOT:   kernel.loops
// CHECK:       kernel.view [[Y]] : tensor<6x7xf32> to tensor<6x3xf32, #kernel.layout<[0, 1], room [0, 0], [0, 4]>>
// CHECK:       kernel.view [[Y]] : tensor<6x7xf32> to tensor<2x3x4xf32, #kernel.layout<[0, 1, 2], room [0, 0, 3], [0, 0, 0]>>
func.func @main(%x: tensor<6x5xf32>) -> (tensor<6x3xf32>, tensor<2x3x4xf32>) {
  %w = graph.weight @w : tensor<5x7xf32>
  %y = graph.matmul %x, %w : tensor<6x7xf32>
  %p, %q = graph.split %y {axis = 1, sizes = [3, 4]} : tensor<6x3xf32>, tensor<6x4xf32>
  %r = graph.reshape %q {shape = [2, 3, 4]} : tensor<2x3x4xf32>
  func.return %p, %r : tensor<6x3xf32>, tensor<2x3x4xf32>
}

// -----

// Copied: no layout has steps, and a call takes its operands row-major.
// CHECK-LABEL: func.func @main
// CHECK:       kernel.loops
// CHECK:       kernel.loops
// CHECK-NEXT:  algebra.scope
// CHECK-NEXT:  kernel.yield
// CHECK-NEXT:  } : tensor<4x3xf32>
// CHECK-NEXT:  kernel.call
func.func @main(%x: tensor<4x10xf32>, %i: tensor<2xi64>) -> (tensor<4x5xf32>, tensor<2x3xf32>) {
  %p = graph.slice %x {starts = [0, 1], sizes = [4, 5], steps = [1, 2]} : tensor<4x5xf32>
  %q = graph.slice %x {starts = [0, 0], sizes = [4, 3], steps = [1, 1]} : tensor<4x3xf32>
  %g = graph.gather %q, %i {axis = 0} : tensor<2x3xf32>
  func.return %p, %g : tensor<4x5xf32>, tensor<2x3xf32>
}
