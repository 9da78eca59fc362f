// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,join-buffers{copies=true}' | filecheck %s

// More parts than a kernel has branches for: each input is copied to its row by a kernel of its own.
// CHECK-LABEL: func.func @main
// CHECK:       [[A:%\w+]] = kernel.loops
// CHECK-NEXT:    algebra.scope (i0: 1, i1: 4)
// CHECK:       tensor<1x4xf32, #kernel.layout<[0, 1], room [0, 0], [16, 0]>>
// CHECK:       [[B:%\w+]] = kernel.loops
// CHECK:       tensor<1x4xf32, #kernel.layout<[0, 1], room [1, 0], [15, 0]>>
// CHECK:       kernel.join [[A]], [[B]], {{.*}} axis 0
func.func @main(%x0: tensor<1x4xf32>, %x1: tensor<1x4xf32>, %x2: tensor<1x4xf32>, %x3: tensor<1x4xf32>, %x4: tensor<1x4xf32>, %x5: tensor<1x4xf32>, %x6: tensor<1x4xf32>, %x7: tensor<1x4xf32>, %x8: tensor<1x4xf32>, %x9: tensor<1x4xf32>, %x10: tensor<1x4xf32>, %x11: tensor<1x4xf32>, %x12: tensor<1x4xf32>, %x13: tensor<1x4xf32>, %x14: tensor<1x4xf32>, %x15: tensor<1x4xf32>, %x16: tensor<1x4xf32>) -> tensor<17x4xf32> {
  %c = graph.concat %x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8, %x9, %x10, %x11, %x12, %x13, %x14, %x15, %x16 {axis = 0} : tensor<17x4xf32>
  func.return %c : tensor<17x4xf32>
}
