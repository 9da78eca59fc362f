// RUN: isoform-opt %s -p 'algebra-mutate{target=v100}' | filecheck %s

// A dilated convolution becomes a regular one of four images; the pixels are put back in place.

// CHECK:      %y.0 = algebra.scope (i0: 4, i1: 512, i2: 7, i3: 7) %x[0, i1, i0 + 2 * i2 - 2 * (i0 floordiv 2), 2 * i3 + i0 floordiv 2]
// CHECK-SAME: isoform.rules = ["mutate"]
// CHECK-NEXT: %y.1 = algebra.scope (i0: 4, i1: 256, i2: 7, i3: 7) sum (k0: 3, k1: 3, k2: 512) %y.0[i0, k2, i2 + k0 - 1, i3 + k1 - 1] * %k[i1, k2, k0, k1]
// CHECK-NEXT: %y = algebra.scope (i0: 1, i1: 256, i2: 14, i3: 14) %y.1[i2 + 2 * i3 - 2 * (i2 floordiv 2) - 4 * (i3 floordiv 2), i1, i2 floordiv 2, i3 floordiv 2]
func.func @main(%x: tensor<1x512x14x14xf32>, %k: tensor<256x512x3x3xf32>) -> tensor<1x256x14x14xf32> {
  %y = algebra.scope (n: 1, f: 256, h: 14, w: 14) sum (c: 512, r: 3, s: 3)
         %x[n, c, h + 2 * r - 2, w + 2 * s - 2] * %k[f, c, r, s] : tensor<1x256x14x14xf32>
  func.return %y : tensor<1x256x14x14xf32>
}

// RUN: isoform-opt %s -p 'algebra-mutate{target=v100 test="split-points"}' | filecheck %s
// RUN: not isoform-opt %s -p 'algebra-mutate{test="some"}' 2>&1 | filecheck %s --check-prefix=NONE
// NONE: unknown mask test 'some'

// A search writes down which mutant it took, and the pass takes that one.

// RUN: isoform-opt %s -p 'algebra-mutate{at="y" mutant="input 0, move d2 mod 2 into d0 major, move d3 mod 2 into d0 major | input 1 | conv stride 1 dilation 1 groups 1 same"}' | filecheck %s --check-prefix=NAMED
// RUN: not isoform-opt %s -p 'algebra-mutate{at="y" mutant="input 5"}' 2>&1 | filecheck %s --check-prefix=UNNAMED
// NAMED: %y.1 = algebra.scope (i0: 4, i1: 256, i2: 7, i3: 7)
// UNNAMED: no mutant 'input 5'

// The same folded into one dim less is wrong in two rows: what they read stands after the image.

// RUN: isoform-opt %s -p 'algebra-mutate{at="y" mutant="input 0, move d2 mod 2 into d0 major, move d3 mod 2 into d2 major | input 1 | conv stride 1 dilation 1 groups 1 same" form="fused"}' | filecheck %s --check-prefix=FUSED
// FUSED: %y.1 = algebra.scope (i0: 2, i1: 256, i2: {{[0-9]+}}, i3: 7) sum
// FUSED-NEXT: %y = algebra.scope (i0: 1, i1: 256, i2: 14, i3: 14)
