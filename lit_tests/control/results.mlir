// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,share-buffers' | filecheck %s

// What a body yields lies where the loop has it: it is no view of another buffer.

func.func @main(%x: tensor<8xf32>) -> tensor<4xf32> {
  %s = graph.constant dense<0.0> : tensor<4xf32>
  %y = control.loop carry(%s : tensor<4xf32>) with(%x : tensor<8xf32>) attributes {trips = 3 : i64} -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<8xf32>):
    %e = graph.exp %k : tensor<8xf32>
    // CHECK: %p = kernel.loops
    // CHECK-NOT: kernel.view
    // CHECK: control.yield %p : tensor<4xf32>
    %p = graph.slice %e {starts = [4], sizes = [4], steps = [1]} : tensor<4xf32>
    control.yield %p : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
