// RUN: isoform-opt %s -p join-buffers | filecheck %s

// Of each part only the first rows are read: the whole part has no place in the result's buffer.
// CHECK-NOT: kernel.join
func.func @main(%x: tensor<6x4xf32>, %z: tensor<6x4xf32>) -> tensor<3x8xf32> {
  %a = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i0: 6, i1: 4) exp(%0[i0, i1]) : tensor<6x4xf32>
    kernel.yield %1 : tensor<6x4xf32>
  } : tensor<6x4xf32>
  %b = kernel.loops (%0 = %z) {
    %1 = algebra.scope (i0: 6, i1: 4) exp(%0[i0, i1]) : tensor<6x4xf32>
    kernel.yield %1 : tensor<6x4xf32>
  } : tensor<6x4xf32>
  %c = kernel.loops (%0 = %a, %1 = %b) {
    %2 = algebra.ones : tensor<4xi1>
    %3 = algebra.scope (i0: 3, i1: 8) select(%2[i1], %0[i0, i1], %1[i0, i1 - 4]) : tensor<3x8xf32>
    kernel.yield %3 : tensor<3x8xf32>
  } : tensor<3x8xf32>
  func.return %c : tensor<3x8xf32>
}
