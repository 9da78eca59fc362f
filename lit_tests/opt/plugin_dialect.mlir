// RUN: isoform-opt %s --plugin %examples/custom_dialect.py | filecheck %s --check-prefix=DEMO
// RUN: isoform-opt %s --plugin %examples/custom_dialect.py -p demo-to-graph | filecheck %s
// RUN: not isoform-opt %s 2>&1 | filecheck %s --check-prefix=WITHOUT

// DEMO: %y = demo.square %x : tensor<4xf32>
// CHECK: %y = graph.mul %x, %x : tensor<4xf32>
// WITHOUT: unknown dialect 'demo' of operation 'demo.square'
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = demo.square %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
