// RUN: isoform-opt %s -p 'algebra-name-scopes' | filecheck %s

// A name that is there stays, and none is given twice.

// CHECK: %s1 = algebra.scope (i: 8) exp(%x[i])
// CHECK: %s0 = algebra.scope (i: 8) exp(%s1[i])
// CHECK: %s2 = algebra.scope (i: 8) exp(%s0[i])
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = algebra.scope (i: 8) exp(%x[i]) : tensor<8xf32>
  %s0 = algebra.scope (i: 8) exp(%0[i]) : tensor<8xf32>
  %1 = algebra.scope (i: 8) exp(%s0[i]) : tensor<8xf32>
  func.return %1 : tensor<8xf32>
}
