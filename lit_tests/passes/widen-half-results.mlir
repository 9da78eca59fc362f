// RUN: isoform-opt %s --split-input-file -p widen-half-results | filecheck %s

// Between two products numbers are stored as float32. They are rounded where they were; a maximum gives one of them.
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %p = algebra.scope (m: 4, n: 4) sum (k: 4) %a[m, k] * %b[k, n] : tensor<4x4xf32>
  %y = algebra.scope (m: 4, n: 4) f16(%p[m, n]) : tensor<4x4xf16>
  %z = algebra.scope (m: 4, n: 4) max(%y[m, n], 0.0) : tensor<4x4xf16>
  %e = algebra.scope (m: 4, n: 4) exp(%z[n, m]) * 2.0 : tensor<4x4xf16>
  %x = algebra.scope (m: 4, n: 4) f32(%e[m, n]) : tensor<4x4xf32>
  %q = algebra.scope (m: 4, n: 4) sum (k: 4) %x[m, k] * %b[k, n] : tensor<4x4xf32>
  func.return %q : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %y = algebra.scope (m: 4, n: 4) f32(f16(%p[m, n])) : tensor<4x4xf32>
// CHECK-NEXT: %z = algebra.scope (m: 4, n: 4) max(%y[m, n], 0.0) : tensor<4x4xf32>
// CHECK-NEXT: %e = algebra.scope (m: 4, n: 4) f32(f16(exp(%z[n, m]) * 2.0)) : tensor<4x4xf32>
// CHECK-NEXT: sum (k: 4) %e[m, k] * %b[k, n] : tensor<4x4xf32>

// -----

// Literals are half floats already. Results, and sums of half floats, stay half floats.
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> (tensor<4x4xbf16>, tensor<4xbf16>, tensor<4x4xbf16>) {
  %p = algebra.scope (m: 4, n: 4) sum (k: 4) %a[m, k] * %b[k, n] : tensor<4x4xf32>
  %y = algebra.scope (m: 4, n: 4) bf16(%p[m, n]) : tensor<4x4xbf16>
  %z = algebra.scope (m: 4, n: 4) min(%y[m, n], 1.01) : tensor<4x4xbf16>
  %w = algebra.scope (m: 4, n: 4) max(%z[m, n], 0.0) : tensor<4x4xbf16>
  %s = algebra.scope (m: 4) sum (k: 4) %z[m, k] : tensor<4xbf16>
  %r = algebra.scope (m: 4, n: 4) bf16(%a[m, n]) : tensor<4x4xbf16>
  func.return %w, %s, %r : tensor<4x4xbf16>, tensor<4xbf16>, tensor<4x4xbf16>
}
// CHECK-LABEL: func.func @main
// CHECK: %y = algebra.scope (m: 4, n: 4) f32(bf16(%p[m, n])) : tensor<4x4xf32>
// CHECK-NEXT: %z = algebra.scope (m: 4, n: 4) min(%y[m, n], 1.0078125) : tensor<4x4xf32>
// CHECK-NEXT: %w = algebra.scope (m: 4, n: 4) max(bf16(%z[m, n]), 0.0) : tensor<4x4xbf16>
// CHECK-NEXT: %s = algebra.scope (m: 4) sum (k: 4) bf16(%z[m, k]) : tensor<4xbf16>
// CHECK-NEXT: %r = algebra.scope (m: 4, n: 4) bf16(%a[m, n]) : tensor<4x4xbf16>
