// RUN: isoform-opt %s -p 'algebra-mutate{target=v100}' | filecheck %s
// RUN: isoform-opt %s -p 'algebra-gather-sums{at="y"},algebra-mutate{at="y.sum.0" mutant="(input 0) beside (input 2) along d1 | (input 1) beside (input 3) along d1 | conv stride 1 dilation 1 groups 1 valid"}' | filecheck %s

// Two convolutions and their sum are one, of images and weights side by side (PET, Figure 10): the
// sum of both is neither written nor read again.

// CHECK-NOT:  %a =
// CHECK:      %y.sum.0.{{[01]}} = algebra.scope (i0: 512, i1: 64, i2: 1, i3: 1)
// CHECK:      sum (k0: 64)
// CHECK:      max(%y.sum.0[n, f, h, w] + %c[f], 0.0)
func.func @main(%x: tensor<1x32x28x28xf32>, %h: tensor<1x32x28x28xf32>, %c: tensor<512xf32>) -> tensor<1x512x28x28xf32> {
  %k = graph.weight @k : tensor<512x32x1x1xf32>
  %l = graph.weight @l : tensor<512x32x1x1xf32>
  %a = algebra.scope (n: 1, f: 512, h: 28, w: 28) sum (c: 32) %x[n, c, h, w] * %k[f, c, 0, 0] : tensor<1x512x28x28xf32>
  %b = algebra.scope (n: 1, f: 512, h: 28, w: 28) sum (c: 32) %h[n, c, h, w] * %l[f, c, 0, 0] : tensor<1x512x28x28xf32>
  %y = algebra.scope (n: 1, f: 512, h: 28, w: 28) max(%a[n, f, h, w] + %c[f] + %b[n, f, h, w], 0.0) : tensor<1x512x28x28xf32>
  func.return %y : tensor<1x512x28x28xf32>
}
