// RUN: isoform-opt %s -p 'specialize-dims{dims="n=3"}' | filecheck %s

// CHECK:      func.func @main(%x: tensor<3x4xf32>) -> (tensor<12xf32>, tensor<3xi64>) {
// CHECK-NEXT:   %y = graph.reshape %x {shape = [12]} : tensor<12xf32>
// CHECK-NEXT:   %i = graph.constant dense<[0, 1, 2]> : tensor<3xi64>
// CHECK-NEXT:   func.return %y, %i : tensor<12xf32>, tensor<3xi64>
func.func @main(%x: tensor<?x4xf32, #graph.dims<n, 4>>)
    -> (tensor<?xf32, #graph.dims<4 * n>>, tensor<?xi64, #graph.dims<n>>)
    attributes {isoform.guards = ["n <= 512"], isoform.sizes = {n = 16 : i64}} {
  %y = graph.reshape %x {shape = [4 * n]} : tensor<?xf32, #graph.dims<4 * n>>
  %i = graph.iota {size = [n]} : tensor<?xi64, #graph.dims<n>>
  func.return %y, %i : tensor<?xf32, #graph.dims<4 * n>>, tensor<?xi64, #graph.dims<n>>
}
