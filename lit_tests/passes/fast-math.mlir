// RUN: isoform-opt %s -p fast-math --fast-math | filecheck %s
// RUN: not isoform-opt %s -p fast-math 2>&1 | filecheck %s --check-prefix=REFUSED

// REFUSED: error: pass 'fast-math': it may change values: it needs --fast-math

func.func @main(%x: tensor<8xf32> {isoform.name = "x"}) -> (tensor<8xf32> {isoform.name = "y"}) {
  // CHECK: kernel.loops ({{.*}}) attributes {isoform.fast_math}
  %y = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i0: 8) %0[i0] + 3.0 - 3.0 : tensor<8xf32>
    kernel.yield %1 : tensor<8xf32>
  } : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
