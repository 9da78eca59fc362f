// RUN: isoform-opt %s -p 'graph-to-algebra,algebra-inline-copies,merge-equal,dce,algebra-to-kernel,fuse-kernels,skip-padding' | filecheck %s

// As many rows as an operand says are chosen: of the product no others are read.
// CHECK-LABEL: func.func @main
// CHECK:         %a = kernel.gemm ({{.*}} = %x, {{.*}} = %w, {{.*}} = %n) rows array<i64: 0, 2> {
// CHECK:         %c = kernel.loops ({{.*}} = %a, {{.*}}) {
func.func @main(%x: tensor<6x8xf32>, %w: tensor<8x8xf32>, %n: tensor<i64>, %zero: tensor<f32>) -> tensor<6x8xf32> {
  %a = graph.matmul %x, %w : tensor<6x8xf32>
  %b = graph.softmax %a {axis = 1} : tensor<6x8xf32>
  %places = graph.constant dense<[[0], [1], [2], [3], [4], [5]]> : tensor<6x1xi64>
  %all = graph.broadcast %places {shape = [6, 8], dims = [0, 1]} : tensor<6x8xi64>
  %most = graph.broadcast %n {shape = [6, 8], dims = []} : tensor<6x8xi64>
  %mask = graph.less %all, %most : tensor<6x8xi1>
  %fill = graph.broadcast %zero {shape = [6, 8], dims = []} : tensor<6x8xf32>
  %c = graph.where %mask, %b, %fill : tensor<6x8xf32>
  func.return %c : tensor<6x8xf32>
}
