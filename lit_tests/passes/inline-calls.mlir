// RUN: isoform-opt %s -p inline-calls --split-input-file --verify-diagnostics | filecheck %s

// A function that is called twice, and one that gives back what it is given.
// CHECK:      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:   %y = graph.relu %x : tensor<4xf32>
// CHECK-NEXT:   %y_1 = graph.relu %y : tensor<4xf32>
// CHECK-NEXT:   %r = graph.add %y_1, %y : tensor<4xf32>
// CHECK-NEXT:   func.return %r : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NOT:  @helper
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = func.call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %y, %z = func.call @two(%h) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %r = graph.add %y, %z : tensor<4xf32>
  func.return %r : tensor<4xf32>
}
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @two(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = func.call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// Without @main what is public stays; a call of a declaration stays.
// CHECK:      func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:   %y = graph.relu %x : tensor<4xf32>
// CHECK-NEXT:   %z = func.call @far(%y) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   func.return %z : tensor<4xf32>
// CHECK-NEXT: }
// CHECK:      func.func @b(%x: tensor<4xf32>) -> tensor<4xf32> {
func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @b(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = func.call @far(%y) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}
func.func @b(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @far(tensor<4xf32>) -> tensor<4xf32>

// -----

// expected-error {{calls itself}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
