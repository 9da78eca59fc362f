// RUN: isoform-opt %s --split-input-file -p 'bound-dims{dims="n<=64"},graph-to-algebra,algebra-inline-copies,merge-equal,dce,algebra-to-kernel,fuse-kernels,skip-padding' | filecheck %s

// Of the result, the first rows are read; of the product too, and of what it multiplies.
// CHECK-LABEL: func.func @main
// CHECK:         %a = kernel.gemm ({{.*}} = %x, {{.*}} = %w, [[N:%\w+]] = %size.n) rows array<i64: 0, 2> {
// CHECK:         %y = kernel.loops ({{.*}} = %a, {{.*}} = %size.n) rows array<i64: 0, 1> {
func.func @main(%x: tensor<?x8xf32, #graph.dims<n, 8>>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, #graph.dims<n, 8>> {
  %a = graph.matmul %x, %w : tensor<?x8xf32, #graph.dims<n, 8>>
  %y = graph.softmax %a {axis = 1} : tensor<?x8xf32, #graph.dims<n, 8>>
  func.return %y : tensor<?x8xf32, #graph.dims<n, 8>>
}

// -----

// The sum reads all rows of a copy, with zeros behind those that count.
// CHECK-LABEL: func.func @main
// CHECK:         %e = kernel.gemm ({{.*}}, {{.*}} = %size.n) rows array<i64: 0, 2> {
// CHECK:         [[COPY:%\w+]] = kernel.loops ({{.*}} = %size.n, {{.*}} = %e, {{.*}}) {
// CHECK:         %s = kernel.loops ({{.*}} = [[COPY]]) {
func.func @main(%x: tensor<?x8xf32, #graph.dims<n, 8>>, %w: tensor<8x8xf32>) -> tensor<1x8xf32> {
  %a = graph.matmul %x, %w : tensor<?x8xf32, #graph.dims<n, 8>>
  %e = graph.exp %a : tensor<?x8xf32, #graph.dims<n, 8>>
  %s = graph.reduce_sum %e {axes = [0]} : tensor<1x8xf32>
  func.return %s : tensor<1x8xf32>
}
