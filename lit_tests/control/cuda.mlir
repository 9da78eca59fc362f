// RUN: not isoform-opt %s -t cuda 2>&1 | filecheck %s

// CHECK: error: control.if %y: control flow has no CUDA code (compile it for the cpu)
func.func @main(%go: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = control.if %go with(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>):
    control.yield %p : tensor<4xf32>
  } else {
  ^bb0(%p: tensor<4xf32>):
    %t = kernel.loops (%0 = %p) {
      %1 = algebra.scope (i0: 4) tanh(%0[i0]) : tensor<4xf32>
      kernel.yield %1 : tensor<4xf32>
    } : tensor<4xf32>
    control.yield %t : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
