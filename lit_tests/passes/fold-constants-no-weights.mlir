// RUN: isoform-opt %s -p fold-constants --verify-diagnostics

// expected-error {{needs the weights}}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = graph.weight @w : tensor<2xf32>
  %v = graph.neg %w : tensor<2xf32>
  %y = graph.add %x, %v : tensor<2xf32>
  func.return %y : tensor<2xf32>
}
