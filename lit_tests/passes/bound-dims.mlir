// RUN: isoform-opt %s -p 'bound-dims{dims="batch=2","n<=4"}' | filecheck %s

func.func @main(%x: tensor<?x?x2xf32, #graph.dims<batch, n, 2>>, %row: tensor<?x1x2xf32, #graph.dims<batch, 1, 2>>)
    -> (tensor<?x?x2xf32, #graph.dims<batch, n + 1, 2>>, tensor<?x1x2xf32, #graph.dims<batch, 1, 2>>) {
  %y = graph.concat %x, %row {axis = 1} : tensor<?x?x2xf32, #graph.dims<batch, n + 1, 2>>
  %e = graph.exp %x : tensor<?x?x2xf32, #graph.dims<batch, n, 2>>
  %s = graph.reduce_sum %e {axes = [1]} : tensor<?x1x2xf32, #graph.dims<batch, 1, 2>>
  func.return %y, %s : tensor<?x?x2xf32, #graph.dims<batch, n + 1, 2>>, tensor<?x1x2xf32, #graph.dims<batch, 1, 2>>
}
// A row behind those that count is a choice at each place; the padding of inputs is zeros.
// CHECK:      func.func @main(%x: tensor<2x4x2xf32> {isoform.name = "x"}, %row: tensor<2x1x2xf32> {{.*}}, %size.n: tensor<i64> {isoform.name = "size.n"}) -> (tensor<2x5x2xf32>, tensor<2x1x2xf32>) attributes {isoform.rows = {{.*}}} {
// CHECK:        [[HERE:%.*]] = graph.equal %{{.*}}, %{{.*}} : tensor<5xi1>
// CHECK:        %y = graph.where %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x5x2xf32>
// exp(0) is 1: a sum reads zeros in place of it.
// CHECK:        %e = graph.exp %x : tensor<2x4x2xf32>
// CHECK:        [[INSIDE:%.*]] = graph.less %{{.*}}, %{{.*}} : tensor<4xi1>
// CHECK-NEXT:   [[MASK:%.*]] = graph.broadcast [[INSIDE]] {shape = [2, 4, 2], dims = [1]} : tensor<2x4x2xi1>
// CHECK:        [[FILLED:%.*]] = graph.where [[MASK]], %e, %{{.*}} : tensor<2x4x2xf32>
// CHECK-NEXT:   %s = graph.reduce_sum [[FILLED]] {axes = [1]} : tensor<2x1x2xf32>
