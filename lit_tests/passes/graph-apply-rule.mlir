// RUN: isoform-opt %s -p 'graph-apply-rule{rule=matmul-merge-shared-left rules="%examples/merge.rules"}' | filecheck %s
// RUN: isoform-opt %s -p 'graph-apply-rule{rule=matmul-merge-shared-left rules="%examples/merge.rules"},graph-apply-rule{rule=matmul-merge-shared-left rules="%examples/merge.rules" back=true}' | filecheck %s --check-prefix BACK

// One match is rewritten, whatever it costs on the way.
// CHECK:       graph.concat %u, %v {axis = 1} attributes {isoform.rules = ["matmul-merge-shared-left"]} : tensor<8x16xf32>
// CHECK:       %{{\w+}}, %{{\w+}} = graph.split
// CHECK:       graph.matmul %x, %w

// From right to left: three products again.
// BACK-NOT:    graph.concat
// BACK-COUNT-3: graph.matmul
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %u = graph.weight @u : tensor<8x8xf32>
  %v = graph.weight @v : tensor<8x8xf32>
  %w = graph.weight @w : tensor<8x8xf32>
  %xu = graph.matmul %x, %u : tensor<4x8xf32>
  %xv = graph.matmul %x, %v : tensor<4x8xf32>
  %xw = graph.matmul %x, %w : tensor<4x8xf32>
  func.return %xu, %xv, %xw : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
