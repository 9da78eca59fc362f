// RUN: isoform-opt %s -p graph-to-algebra,algebra-to-kernel,fuse-kernels -o %t.mlir
// The program against its own kernels: it stays as it is.
// RUN: isoform-opt %s -p 'verify-equivalence{against="%t.mlir"}' | filecheck %s
// And the kernels against a program written otherwise.
// RUN: isoform-opt %t.mlir -p 'verify-equivalence{against="%s"}' | filecheck %s --check-prefix=KERNEL
// RUN: sed 's/dense<2.0>/dense<2.5>/' %s > %t.wrong.mlir
// RUN: not isoform-opt %s -p 'verify-equivalence{against="%t.wrong.mlir"}' 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: sed 's/4x/5x/g' %s > %t.shape.mlir
// RUN: not isoform-opt %s -p 'verify-equivalence{against="%t.shape.mlir"}' 2>&1 | filecheck %s --check-prefix=SHAPE

// CHECK:      %y = graph.mul %x, %c : tensor<4x2xf32>
// CHECK-NEXT: func.return %y
// KERNEL: kernel.loops
// WRONG: error: against {{.*}}.wrong.mlir: Different: output 'y' at [0, 0]
// SHAPE: error: pass 'verify-equivalence': input 'x' has another shape: expected [5, 2], found [4, 2]
func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %c = graph.constant dense<2.0> : tensor<4x2xf32>
  %y = graph.mul %x, %c : tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}
