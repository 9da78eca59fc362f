// RUN: isoform-opt %s -p merge-equal --no-locations | filecheck %s --check-prefix=MERGE
// RUN: isoform-opt %s -p canonicalize,dce --no-locations | filecheck %s --check-prefix=CANON
// RUN: isoform-opt %s -p fold-constants --no-locations | filecheck %s --check-prefix=FOLD
// RUN: isoform-opt %s -p infer-shapes,hoist-invariants,integer-products,fold-batch-norm,unroll-loops,inline-calls --no-locations | filecheck %s --check-prefix=SAME
// RUN: isoform-opt %s -p 'graph-saturate{rules=laws}' --no-locations | filecheck %s --check-prefix=LAWS
// RUN: isoform-opt %s -p 'graph-substitute{programs=20}' --no-locations | filecheck %s --check-prefix=SUBST
// RUN: isoform-opt %s -p 'graph-apply-rule{rule=transpose-transpose-to-operand}' --no-locations | filecheck %s --check-prefix=APPLY

// The passes of the graph level on a program with symbols: the dims of %x and %y are both `?`, and
// never equal. Costs are those of the example sizes.
func.func @main(%x: tensor<?x4xf32, #graph.dims<n, 4>>, %y: tensor<?x4xf32, #graph.dims<m, 4>>)
    -> (tensor<?x4xf32, #graph.dims<n, 4>>, tensor<?x4xf32, #graph.dims<n, 4>>, tensor<?x4xf32, #graph.dims<m, 4>>)
    attributes {isoform.sizes = {n = 8 : i64, m = 16 : i64}} {
  // MERGE-COUNT-1: graph.relu %x
  // MERGE-NOT:     graph.relu %x
  // MERGE:         graph.relu %y
  %a = graph.relu %x : tensor<?x4xf32, #graph.dims<n, 4>>
  %b = graph.relu %x : tensor<?x4xf32, #graph.dims<n, 4>>
  %c = graph.relu %y : tensor<?x4xf32, #graph.dims<m, 4>>

  // Reshapes and transposes that undo each other go, whatever n is.
  // CANON-NOT:   graph.transpose
  // CANON-NOT:   graph.reshape
  // CANON:       func.return %a, %s, %c
  %t = graph.transpose %a {perm = [1, 0]} : tensor<4x?xf32, #graph.dims<4, n>>
  %u = graph.transpose %t {perm = [1, 0]} : tensor<?x4xf32, #graph.dims<n, 4>>
  %v = graph.reshape %b {shape = [n * 4]} : tensor<?xf32, #graph.dims<4 * n>>
  %w = graph.reshape %v {shape = [n, 4]} : tensor<?x4xf32, #graph.dims<n, 4>>

  // What n does not decide is folded; the broadcast stays.
  // FOLD:        %kl = graph.constant dense<[2.000000e+00, 4.000000e+00, 6.000000e+00, 8.000000e+00]>
  // FOLD:        graph.broadcast %kl {shape = [n, 4], dims = [1]}
  %k = graph.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %l = graph.constant dense<2.0> : tensor<4xf32>
  %kl = graph.mul %k, %l : tensor<4xf32>
  %kb = graph.broadcast %kl {shape = [n, 4], dims = [1]} : tensor<?x4xf32, #graph.dims<n, 4>>
  %s = graph.mul %w, %kb : tensor<?x4xf32, #graph.dims<n, 4>>

  // SAME:        %v = graph.reshape %b {shape = [4 * n]} : tensor<?xf32, #graph.dims<4 * n>>
  // SAME:        func.return %u, %s, %c
  // LAWS-NOT:    graph.transpose
  // LAWS-NOT:    graph.reshape
  // LAWS:        graph.relu %y : tensor<?x4xf32, #graph.dims<m, 4>>
  // SUBST-NOT:   graph.transpose
  // SUBST:       func.return %a, %s, %c
  // APPLY-NOT:   graph.transpose
  // APPLY:       func.return %a, %s, %c
  func.return %u, %s, %c : tensor<?x4xf32, #graph.dims<n, 4>>, tensor<?x4xf32, #graph.dims<n, 4>>, tensor<?x4xf32, #graph.dims<m, 4>>
}
