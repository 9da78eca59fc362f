// RUN: isoform-opt %s | filecheck %s
// RUN: isoform-opt %s | isoform-opt | filecheck %s
// RUN: isoform-opt %s -p canonicalize | filecheck %s --check-prefix=CANON

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %x: tensor<?x?x8xf32, #graph.dims<batch, seq, 8>>
// CHECK-SAME: attributes {isoform.guards = ["batch >= 1", "seq <= 512"]}
func.func @main(%x: tensor<?x?x8xf32, #graph.dims<batch, seq, 8>>, %w: tensor<8x4xf32>)
    -> tensor<2x2x?x?xf32, #graph.dims<2, 2, batch, seq>>
    attributes {isoform.guards = ["batch >= 1", "seq <= 512"]} {
  // CHECK-NEXT: graph.reshape %x {shape = [batch * seq, 8]} : tensor<?x8xf32, #graph.dims<batch * seq, 8>>
  %flat = graph.reshape %x {shape = [seq * batch, 8]} : tensor<?x8xf32, #graph.dims<batch * seq, 8>>
  // CHECK-NEXT: graph.matmul
  %y = graph.matmul %flat, %w : tensor<?x4xf32, #graph.dims<batch * seq, 4>>
  // CHECK-NEXT: graph.concat %y, %y {axis = 0} : tensor<?x4xf32, #graph.dims<2 * batch * seq, 4>>
  %twice = graph.concat %y, %y {axis = 0} : tensor<?x4xf32, #graph.dims<batch * seq + batch * seq, 4>>
  // CHECK-NEXT: graph.slice %twice {starts = [batch * seq, 0], sizes = [batch * seq, 4], steps = [1, 1]}
  %half = graph.slice %twice {starts = [batch * seq, 0], sizes = [batch * seq, 4], steps = [1, 1]}
      : tensor<?x4xf32, #graph.dims<batch * seq, 4>>
  // CHECK-NEXT: graph.iota {size = [seq]} : tensor<?xi64, #graph.dims<seq>>
  %i = graph.iota {size = [seq]} : tensor<?xi64, #graph.dims<seq>>
  // Two reshapes are one, without asking for a number; concat's parts may be empty, so they stay.
  // CANON: graph.concat %{{.*}}, %{{.*}} {axis = 0}
  // CANON: %b = graph.reshape %half {shape = [2, 2, batch, seq]}
  %a = graph.reshape %half {shape = [4 * batch, seq]} : tensor<?x?xf32, #graph.dims<4 * batch, seq>>
  %b = graph.reshape %a {shape = [2, 2, batch, seq]} : tensor<2x2x?x?xf32, #graph.dims<2, 2, batch, seq>>
  func.return %b : tensor<2x2x?x?xf32, #graph.dims<2, 2, batch, seq>>
}

// CHECK-LABEL: func.func @windows(
func.func @windows(%x: tensor<?x3x?x?xf32, #graph.dims<n, 3, h, w>>, %k: tensor<8x3x3x3xf32>)
    attributes {isoform.guards = ["h >= 1", "w >= 1"]} {
  // CHECK-NEXT: #graph.dims<n, 8, (h + 1) floordiv 2, (w + 1) floordiv 2>
  %y = graph.conv %x, %k {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]}
      : tensor<?x8x?x?xf32, #graph.dims<n, 8, (h + 1) floordiv 2, (w + 1) floordiv 2>>
  func.return
}
