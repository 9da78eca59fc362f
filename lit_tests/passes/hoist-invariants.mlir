// RUN: isoform-opt %s -p hoist-invariants | filecheck %s

// An inner loop's exp goes in front of the outer loop, too. The transposition stays by itself: its
// readers read it so. What may fail stays: a gather.

// CHECK-LABEL: func.func @main
// CHECK: %e = graph.exp %b
// CHECK-NEXT: %p = graph.neg
// CHECK-NOT: graph.
// CHECK: %y = control.loop times %n
func.func @main(%n: tensor<i64>, %x: tensor<4xf32>, %b: tensor<4xf32>, %m: tensor<4x4xf32>, %j: tensor<4xi64>) -> tensor<4xf32> {
  %y = control.loop times %n carry(%x : tensor<4xf32>) with(%n, %b, %m, %j : tensor<i64>, tensor<4xf32>, tensor<4x4xf32>, tensor<4xi64>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %c: tensor<i64>, %k: tensor<4xf32>, %q: tensor<4x4xf32>, %l: tensor<4xi64>):
    %t = graph.transpose %q {perm = [1, 0]} : tensor<4x4xf32>
    %g = graph.gather %k, %l {axis = 0} : tensor<4xf32>
    // CHECK: graph.transpose
    // CHECK: graph.gather
    %z = control.loop times %c carry(%h : tensor<4xf32>) with(%k, %g, %t : tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32> {
    ^bb1(%ii: tensor<i64>, %hh: tensor<4xf32>, %kk: tensor<4xf32>, %gg: tensor<4xf32>, %tt: tensor<4x4xf32>):
      %e = graph.exp %kk : tensor<4xf32>
      %p = graph.neg %e : tensor<4xf32>
      %s = graph.mul %hh, %p : tensor<4xf32>
      %r = graph.reshape %s {shape = [1, 4]} : tensor<1x4xf32>
      %d = graph.matmul %r, %tt : tensor<1x4xf32>
      %u = graph.reshape %d {shape = [4]} : tensor<4xf32>
      %w = graph.add %u, %gg : tensor<4xf32>
      control.yield %w : tensor<4xf32>
    }
    control.yield %z : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
