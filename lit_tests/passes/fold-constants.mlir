// RUN: isoform-opt %s -p fold-constants --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT:  [[C:%\w+]] = graph.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
// The broadcast before its user stays.
// CHECK-NEXT:  [[B:%\w+]] = graph.broadcast [[C]]
// CHECK-NEXT:  graph.add %x, [[B]]
func.func @main(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %c = graph.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %d = graph.reciprocal %c : tensor<2xf32>
  %e = graph.broadcast %d {shape = [3, 2], dims = [1]} : tensor<3x2xf32>
  %y = graph.add %x, %e : tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Nothing is computed: nothing changes, and no weights are needed.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:  graph.weight @w
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = graph.weight @w : tensor<2xf32>
  %y = graph.add %x, %w : tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

// Bytes stay bytes: their cast to 32 bits is the user's.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:  [[C:%\w+]] = graph.constant dense<[3, -1]> : tensor<2xi8>
// CHECK-NEXT:  [[W:%\w+]] = graph.cast [[C]] {to = i32}
// CHECK-NEXT:  graph.add %x, [[W]]
func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
  %c = graph.constant dense<[-3, 1]> : tensor<2xi8>
  %d = graph.neg %c : tensor<2xi8>
  %e = graph.cast %d {to = i32} : tensor<2xi32>
  %y = graph.add %x, %e : tensor<2xi32>
  func.return %y : tensor<2xi32>
}
