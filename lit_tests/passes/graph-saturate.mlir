// RUN: isoform-opt %s -p 'graph-saturate{target=h100 rules="%examples/merge.rules"}' | filecheck %s

// Three products share %x: one round merges all, the weights joined at compile time; relu moves above
// the split, which is one of three parts, and the names of what stays are kept.
// CHECK-LABEL: func.func @main
// CHECK-DAG:   [[W:%\w+]] = graph.concat %{{\w+}}, %{{\w+}}, %{{\w+}} {axis = 1} attributes {isoform.rules = ["matmul-merge-shared-left"]} : tensor<256x768xf32>
// CHECK-DAG:   [[M:%\w+]] = graph.matmul %x, [[W]] attributes {isoform.rules = ["matmul-merge-shared-left"]} : tensor<64x768xf32>
// CHECK-DAG:   [[R:%\w+]] = graph.relu [[M]] attributes {isoform.rules = ["relu-of-split{{[a-z-]*}}"]}
// CHECK-DAG:   %a, %b, %c = graph.split [[R]] {axis = 1, sizes = [256, 256, 256]}
// CHECK:       func.return %z
func.func @main(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %u = graph.weight @u : tensor<256x256xf32>
  %v = graph.weight @v : tensor<256x256xf32>
  %w = graph.weight @w : tensor<256x256xf32>
  %xu = graph.matmul %x, %u : tensor<64x256xf32>
  %xv = graph.matmul %x, %v : tensor<64x256xf32>
  %xw = graph.matmul %x, %w : tensor<64x256xf32>
  %a = graph.relu %xu : tensor<64x256xf32>
  %b = graph.relu %xv : tensor<64x256xf32>
  %c = graph.relu %xw : tensor<64x256xf32>
  %y = graph.add %a, %b : tensor<64x256xf32>
  %z = graph.add %y, %c : tensor<64x256xf32>
  func.return %z : tensor<64x256xf32>
}
