// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,fuse-kernels,plan-memory' | filecheck %s

// A pass works on a body as on a program: product, sum and tanh are one kernel. The
// body's memory is a buffer of the program's arena: 64 bytes, a second h, the step and a condition.

// CHECK: isoform.arena_bytes = 320 : i64
// CHECK-LABEL: func.func @main
func.func @main(%n: tensor<i64>, %x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  // CHECK: control.loop times %n carry(%x : tensor<1x8xf32>) with(%x : tensor<1x8xf32>) attributes {arenas = [64 : i64], offsets = [256 : i64], scratch = 0 : i64}
  %y = control.loop times %n carry(%x : tensor<1x8xf32>) with(%x : tensor<1x8xf32>) -> tensor<1x8xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<1x8xf32>, %b: tensor<1x8xf32>):
    // CHECK: %t = kernel.loops (%0 = %h, %1 = %w, %2 = %b) offset 0 : i64 {
    // CHECK: tanh
    // CHECK: control.yield %t
    %w = graph.weight @w : tensor<8x8xf32>
    %m = graph.matmul %h, %w : tensor<1x8xf32>
    %s = graph.add %m, %b : tensor<1x8xf32>
    %t = graph.tanh %s : tensor<1x8xf32>
    control.yield %t : tensor<1x8xf32>
  }
  func.return %y : tensor<1x8xf32>
}
