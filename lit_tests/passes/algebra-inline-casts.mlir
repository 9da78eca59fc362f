// RUN: isoform-opt %s --split-input-file -p algebra-inline-casts | filecheck %s

// A product in 32 bits reads the bytes that its operands were widened from.

// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<4x8xui8>, %w: tensor<8x6xi8>) -> tensor<4x6xi32> {
  %a = algebra.scope (m: 4, k: 8) i32(%x[m, k]) : tensor<4x8xi32>
  %b = algebra.scope (k: 8, n: 6) i32(%w[k, n]) : tensor<8x6xi32>
  // CHECK-NEXT: %y = algebra.scope (m: 4, n: 6) sum (k: 8) i32(%x[m, k]) * i32(%w[k, n]) : tensor<4x6xi32>
  %y = algebra.scope (m: 4, n: 6) sum (k: 8) %a[m, k] * %b[k, n] : tensor<4x6xi32>
  // CHECK-NEXT: func.return
  func.return %y : tensor<4x6xi32>
}

// -----

// A part of a tensor ends before the tensor does: what is read past it stays 0.

// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<9xui8>, %w: tensor<3xi8>) -> tensor<8xi32> {
  // CHECK-NEXT: %a = algebra.scope (i: 8) i32(%x[i]) : tensor<8xi32>
  %a = algebra.scope (i: 8) i32(%x[i]) : tensor<8xi32>
  // CHECK-NEXT: %y = algebra.scope (i: 8) sum (r: 3) %a[i + r] * i32(%w[r]) : tensor<8xi32>
  %b = algebra.scope (r: 3) i32(%w[r]) : tensor<3xi32>
  %y = algebra.scope (i: 8) sum (r: 3) %a[i + r] * %b[r] : tensor<8xi32>
  func.return %y : tensor<8xi32>
}
