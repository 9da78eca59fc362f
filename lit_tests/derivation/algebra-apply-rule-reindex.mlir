// RUN: isoform-opt %s -p 'algebra-apply-rule{rule=reindex at=t phi="h + r","r"}' | filecheck %s

// The scope depends on h and r through h + r and r alone; its reader reads there.

// CHECK: %t = algebra.scope (i0: 10, i1: 3) sum (k0: 4) %k[k0, i1] * %x[k0, i0 - 1] {{.*}}: tensor<10x3xf32>
// CHECK: %y = algebra.scope (h: 8) sum (r: 3) %t[h + r, r] : tensor<8xf32>
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4x3xf32>) -> tensor<8xf32> {
  %t = algebra.scope (h: 8, r: 3) sum (c: 4) %x[c, h + r - 1] * %k[c, r] : tensor<8x3xf32>
  %y = algebra.scope (h: 8) sum (r: 3) %t[h, r] : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
