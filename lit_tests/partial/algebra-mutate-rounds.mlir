// RUN: isoform-opt %s -p 'algebra-mutate{target=v100 rounds=2 depth=2 budget=600}' | filecheck %s

// A round rewrites by the rules of derivation, too: what they give is cheaper here than any mutant.

// CHECK:      %y.0 = algebra.scope (i0: 14, i1: 14, i2: 64, i3: 3, i4: 3) sum (k0: 64) %y.0.0[k0, i2, i3, i4] * %x[0, k0, i0, i1]
// CHECK:      %y = algebra.scope (i0: 1, i1: 64, i2: 14, i3: 14) sum (k0: 3, k1: 3) %y.0[i2 + 2 * k0 - 2, i3 + 2 * k1 - 2, i1, k0, k1]
// CHECK-SAME: isoform.derivation
func.func @main(%x: tensor<1x64x14x14xf32>) -> tensor<1x64x14x14xf32> {
  %k = graph.weight @k : tensor<64x64x3x3xf32>
  %y = algebra.scope (n: 1, f: 64, h: 14, w: 14) sum (c: 64, r: 3, s: 3)
         %x[n, c, h + 2 * r - 2, w + 2 * s - 2] * %k[f, c, r, s] : tensor<1x64x14x14xf32>
  func.return %y : tensor<1x64x14x14xf32>
}

// What a mutant is made of may be derived from, here by hand: its view stays as it is.

// RUN: isoform-opt %s -p 'algebra-mutate{at="y" mutant="input 1, move d2 mod 2 into d0 major, move d3 mod 2 into d0 major | input 0 | conv stride 1 dilation 1 groups 1 same"},algebra-apply-rule{rule=sum-split at="y.1" sums="k2"}' | filecheck %s --check-prefix=BOTH
// BOTH:      %y.0 = algebra.scope (i0: 4, i1: 64, i2: 7, i3: 7) %x[
// BOTH:      %y.1.0 = algebra.scope (i0: 4, i1: 64, i2: 7, i3: 7, i4: 3, i5: 3) sum (k0: 64) %k[i1, k0, i4, i5] * %y.0[
// BOTH:      %y.1 = algebra.scope (i0: 4, i1: 64, i2: 7, i3: 7) sum ({{.*}}: 3, {{.*}}: 3) %y.1.0[
// BOTH:      %y = algebra.scope (i0: 1, i1: 64, i2: 14, i3: 14) %y.1[
