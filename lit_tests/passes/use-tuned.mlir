// A kernel without a tuned schedule stays as it is, and so does all where there is no database.
// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,assign-layouts,use-tuned{database="%t.json"}' | filecheck %s
// A database that is broken is one clear line.
// RUN: echo '{' > %t.broken.json
// RUN: not isoform-opt %s -p 'graph-to-algebra,algebra-to-kernel,use-tuned{database="%t.broken.json"}' 2>&1 | filecheck %s --check-prefix ERROR
// ERROR: broken.json

// CHECK-LABEL: func.func @main
// CHECK:       kernel.gemm
// CHECK-NOT:   schedule
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x4xf32> {
  %w = graph.weight @w : tensor<16x4xf32>
  %y = graph.matmul %x, %w : tensor<8x4xf32>
  func.return %y : tensor<8x4xf32>
}
