// RUN: isoform-opt %s -p 'bound-dims{dims="past<=4" grow=true}' | filecheck %s
// RUN: isoform-opt %s -p 'bound-dims{dims="past<=4" grow=true},graph-to-algebra,algebra-inline-copies,merge-equal,dce,algebra-to-kernel,fuse-kernels,skip-padding' | filecheck %s --check-prefix KERNEL

// A cache: the result may lie in the input's array, so both have the same extents.
func.func @main(%k: tensor<2x?x4xf32, #graph.dims<2, past, 4>>, %x: tensor<2x1x4xf32>) -> tensor<2x?x4xf32, #graph.dims<2, past + 1, 4>> {
  %y = graph.concat %k, %x {axis = 1} : tensor<2x?x4xf32, #graph.dims<2, past + 1, 4>>
  func.return %y : tensor<2x?x4xf32, #graph.dims<2, past + 1, 4>>
}
// CHECK:      func.func @main(%k: tensor<2x5x4xf32> {{.*}}, %x: tensor<2x1x4xf32> {{.*}}, %size.past: tensor<i64> {{.*}}, %{{.*}}: tensor<i64> {isoform.name = "size.past + 1"}, %kept.k: tensor<i64> {{.*}}, %ends.k: tensor<i64> {{.*}}) -> tensor<2x5x4xf32>
// CHECK-SAME:   isoform.rows = {{\[\[}}"", "past + 1", ""]]
// CHECK-SAME:   isoform.grows = {{\[\[}}"k", 1 : i64]]
// CHECK:        [[HERE:%.*]] = graph.equal
// CHECK:        [[ROW:%.*]] = graph.broadcast %x {shape = [2, 5, 4], dims = [0, 1, 2]}
// CHECK-NEXT:   [[MASK:%.*]] = graph.broadcast [[HERE]] {shape = [2, 5, 4], dims = [1]}
// CHECK-NEXT:   %y = graph.where [[MASK]], [[ROW]], %k : tensor<2x5x4xf32>

// Its kernel writes what lies between two counts.
// KERNEL:     %y = kernel.loops ({{.*}} = %x, {{.*}} = %k, {{.*}} = %{{.*}}, {{.*}} = %kept.k, {{.*}} = %ends.k) rows array<i64: 1, 3, 1, 5> kept array<i64: 1, 4> {
