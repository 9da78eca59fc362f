// RUN: isoform-opt %s -p 'algebra-name-scopes' | filecheck %s

// Names count by what makes a value; inputs and outputs keep theirs as attributes.

// CHECK: func.func @main(%x0: tensor<8xf32> {isoform.name = "x"}) -> (tensor<8xf32> {isoform.name = "val"}) {
// CHECK: %s0 = algebra.scope (i: 8) exp(%x0[i])
// CHECK: %v0 = graph.relu %s0
// CHECK: %s1 = algebra.scope (i: 8) exp(%v0[i])
// CHECK: %s2 = algebra.scope (i: 8) exp(%s1[i]) + %w0[i]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %w = graph.weight @s0 : tensor<8xf32>
  %val_60 = algebra.scope (i: 8) exp(%x[i]) : tensor<8xf32>
  %val_61 = graph.relu %val_60 : tensor<8xf32>
  %0 = algebra.scope (i: 8) exp(%val_61[i]) : tensor<8xf32>
  %val = algebra.scope (i: 8) exp(%0[i]) + %w[i] : tensor<8xf32>
  func.return %val : tensor<8xf32>
}
