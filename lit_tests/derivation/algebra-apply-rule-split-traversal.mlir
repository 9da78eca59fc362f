// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=split-traversal at=t traversal=h by=2}' | filecheck %s

// Seven positions become four pairs; the reader that leaves the shape gets a guard.

// CHECK: %t = algebra.scope (i0: 4, i1: 2) sum (k0: 2) %k[k0] * %x[2 * i0 + i1 + 2 * k0] {{.*}}: tensor<4x2xf32>
// CHECK: %y = algebra.scope (h: 9) exp(%t[h floordiv 2, h - 2 * (h floordiv 2)] * %{{[0-9]+}}[h]) : tensor<9xf32>
func.func @main(%x: tensor<9xf32>, %k: tensor<2xf32>) -> tensor<9xf32> {
  %t = algebra.scope (h: 7) sum (r: 2) %x[h + 2 * r] * %k[r] : tensor<7xf32>
  %y = algebra.scope (h: 9) exp(%t[h]) : tensor<9xf32>
  func.return %y : tensor<9xf32>
}
