// RUN: isoform-opt %s | isoform-opt | filecheck %s

// The text of every op, read back as it was written.

// CHECK-LABEL: func.func @main
func.func @main(%n: tensor<i64>, %go: tensor<i1>, %x: tensor<4xf32>, %s: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %w = control.loop times %n while %go carry(%x : tensor<4xf32>) with(%x : tensor<4xf32>) attributes {conditional} -> tensor<4xf32> {
  // CHECK-NEXT: ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>):
  %w = control.loop times %n while %go carry(%x : tensor<4xf32>) with(%x : tensor<4xf32>) attributes {conditional} -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>):
    %t = graph.add %h, %k : tensor<4xf32>
    %sum = graph.reduce_sum %t {axes = [0], keep_dims = false} : tensor<f32>
    %one = graph.constant dense<1.0> : tensor<f32>
    %on = graph.less %sum, %one : tensor<i1>
    // CHECK: control.yield %on, %t : tensor<i1>, tensor<4xf32>
    control.yield %on, %t : tensor<i1>, tensor<4xf32>
  }
  // CHECK: %a, %b = control.loop carry(%x : tensor<4xf32>) scan(%s : tensor<8x4xf32>) attributes {trips = 8 : i64, backward = array<i64: 1, 0>} -> tensor<4xf32>, tensor<8x4xf32> {
  %a, %b = control.loop carry(%x : tensor<4xf32>) scan(%s : tensor<8x4xf32>) attributes {trips = 8 : i64, backward = array<i64: 1, 0>} -> tensor<4xf32>, tensor<8x4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %row: tensor<4xf32>):
    %t = graph.add %h, %row : tensor<4xf32>
    control.yield %t, %h : tensor<4xf32>, tensor<4xf32>
  }
  // CHECK: %z = control.if %go with(%x : tensor<4xf32>) -> tensor<4xf32> {
  %z = control.if %go with(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>):
    control.yield %p : tensor<4xf32>
  // CHECK: } else {
  } else {
  ^bb0(%p: tensor<4xf32>):
    %t = graph.neg %p : tensor<4xf32>
    control.yield %t : tensor<4xf32>
  }
  func.return %w, %a, %b, %z : tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>, tensor<4xf32>
}
