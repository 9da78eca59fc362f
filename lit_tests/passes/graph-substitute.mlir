// RUN: isoform-opt %s -p 'graph-substitute{target=h100 rules="%examples/merge.rules"}' | filecheck %s

// Three products share %x: their weights are joined at compile time, in two steps; the splits of a
// split become one, which keeps the names.
// CHECK-LABEL: func.func @three
// CHECK:       [[W:%\w+]] = graph.concat %{{\w+}}, %{{\w+}} {axis = 1} attributes {isoform.rules = ["matmul-merge-shared-left", "matmul-merge-shared-left"]} : tensor<256x768xf32>
// CHECK-NEXT:  [[M:%\w+]] = graph.matmul %x, [[W]]
// CHECK-NEXT:  [[S:%\w+]], %{{\w+}}, %{{\w+}} = graph.split [[M]] {axis = 1, sizes = [256, 256, 256]}
// CHECK-NOT:   graph.matmul
// CHECK:       func.return
func.func @three(%x: tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>, tensor<64x256xf32>) {
  %u = graph.weight @u : tensor<256x256xf32>
  %v = graph.weight @v : tensor<256x256xf32>
  %w = graph.weight @w : tensor<256x256xf32>
  %xu = graph.matmul %x, %u : tensor<64x256xf32>
  %xv = graph.matmul %x, %v : tensor<64x256xf32>
  %xw = graph.matmul %x, %w : tensor<64x256xf32>
  func.return %xu, %xv, %xw : tensor<64x256xf32>, tensor<64x256xf32>, tensor<64x256xf32>
}

// One product is computed from the other: joining them would close a cycle.
// CHECK-LABEL: func.func @chained
// CHECK-NOT:   graph.concat
// CHECK:       graph.matmul
// CHECK:       graph.relu
// CHECK-NEXT:  graph.matmul
// CHECK-NEXT:  func.return
func.func @chained(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %u = graph.weight @u : tensor<64x64xf32>
  %xu = graph.matmul %x, %u : tensor<64x64xf32>
  %a = graph.relu %xu : tensor<64x64xf32>
  %y = graph.matmul %x, %a : tensor<64x64xf32>
  func.return %y : tensor<64x64xf32>
}

// Weights that stand the other way round: flags are transposes to the rules, at no cost.
// CHECK-LABEL: func.func @flagged
// CHECK:       [[U:%\w+]] = graph.transpose %u {perm = [1, 0]}
// CHECK:       [[V:%\w+]] = graph.transpose %v {perm = [1, 0]}
// CHECK:       [[UV:%\w+]] = graph.concat [[U]], [[V]] {axis = 1}
// CHECK-NEXT:  graph.matmul %x, [[UV]]
// CHECK-NOT:   graph.matmul
// CHECK:       func.return
func.func @flagged(%x: tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>) {
  %u = graph.weight @u : tensor<256x256xf32>
  %v = graph.weight @v : tensor<256x256xf32>
  %xu = graph.matmul %x, %u {transpose_b = true} : tensor<64x256xf32>
  %xv = graph.matmul %x, %v {transpose_b = true} : tensor<64x256xf32>
  func.return %xu, %xv : tensor<64x256xf32>, tensor<64x256xf32>
}

// A transpose that only a product reads is folded into it.
// CHECK-LABEL: func.func @folded
// CHECK-NEXT:  graph.matmul %x, %y {transpose_b = true} : tensor<64x32xf32>
// CHECK-NEXT:  func.return
func.func @folded(%x: tensor<64x256xf32>, %y: tensor<32x256xf32>) -> tensor<64x32xf32> {
  %t = graph.transpose %y {perm = [1, 0]} : tensor<256x32xf32>
  %z = graph.matmul %x, %t : tensor<64x32xf32>
  func.return %z : tensor<64x32xf32>
}
