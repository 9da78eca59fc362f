// RUN: isoform-opt %s --plugin %examples/custom_pass.py -p relu-once,dce --check | filecheck %s

// CHECK:      %y = graph.relu %x
// CHECK-NEXT: func.return %y
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  %z = graph.relu %y : tensor<4xf32>
  func.return %z : tensor<4xf32>
}
