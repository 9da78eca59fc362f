// RUN: isoform-opt %s -p unroll-loops | filecheck %s
// RUN: isoform-opt %s -p 'unroll-loops{most=3}' | filecheck %s --check-prefix=LESS

// Rows are read and stacked in the order of the iterations; what data end stays a loop.

// CHECK-LABEL: func.func @main
// LESS-LABEL: func.func @main
// LESS-COUNT-2: control.loop
func.func @main(%n: tensor<i64>, %x: tensor<4xf32>, %s: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>, tensor<4xf32>) {
  // CHECK: %0 = graph.constant dense<0> : tensor<i64>
  // CHECK-NEXT: %1 = graph.slice %s {starts = [1, 0], sizes = [1, 4], steps = [1, 1]} : tensor<1x4xf32>
  // CHECK-NEXT: %2 = graph.reshape %1 {shape = [4]} : tensor<4xf32>
  // CHECK-NEXT: %t = graph.sub %x, %2 : tensor<4xf32>
  // CHECK: %4 = graph.slice %s {starts = [0, 0], sizes = [1, 4], steps = [1, 1]} : tensor<1x4xf32>
  // CHECK: %t_1 = graph.sub %t, %5 : tensor<4xf32>
  // CHECK: graph.concat %6, %7 {axis = 0} : tensor<2x4xf32>
  %b, %rows = control.loop carry(%x : tensor<4xf32>) scan(%s : tensor<2x4xf32>) attributes {trips = 2 : i64, backward = array<i64: 1, 0>} -> tensor<4xf32>, tensor<2x4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %row: tensor<4xf32>):
    %t = graph.sub %h, %row : tensor<4xf32>
    control.yield %t, %h : tensor<4xf32>, tensor<4xf32>
  }
  // CHECK: control.loop times %n
  %a = control.loop times %n carry(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %u = graph.tanh %h : tensor<4xf32>
    control.yield %u : tensor<4xf32>
  }
  func.return %b, %rows, %a : tensor<4xf32>, tensor<2x4xf32>, tensor<4xf32>
}
