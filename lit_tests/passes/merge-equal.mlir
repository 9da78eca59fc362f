// RUN: isoform-opt %s -p merge-equal | filecheck %s

// Equal ops are one; others stay, and so does what only the inside of another op computes.

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %{{.*}} = graph.relu %{{.*}} : tensor<4xf32>
// CHECK-NEXT: %{{.*}} = graph.neg %{{.*}} : tensor<4xf32>
// CHECK-NEXT: %{{.*}} = graph.add %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK-NEXT: %{{.*}} = graph.add %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK-NEXT: func.return
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.relu %x : tensor<4xf32>
  %b = graph.relu %x : tensor<4xf32>
  %c = graph.neg %a : tensor<4xf32>
  %d = graph.neg %b : tensor<4xf32>
  %e = graph.add %a, %b : tensor<4xf32>
  %y = graph.add %e, %d : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
