// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,kernel-to-nest' | filecheck %s

// What has no elements needs no code: no nest is made of it.

// CHECK: kernel.loops
// CHECK-NOT: nest.kernel
func.func @main(%x: tensor<1xf32>) -> (tensor<1xf32>, tensor<0xf32>) {
  %0, %1 = graph.split %x {axis = 0, sizes = [1, 0]} : tensor<1xf32>, tensor<0xf32>
  func.return %0, %1 : tensor<1xf32>, tensor<0xf32>
}
