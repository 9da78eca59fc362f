// RUN: isoform-opt %s -p graph-to-algebra,algebra-to-kernel,kernel-to-nest | isoform-opt | filecheck %s

// A conversion says the sign of what it makes; what is read from a buffer has none. The text is
// read back.
// CHECK-LABEL: nest.kernel @y
// CHECK:       [[V:%\w+]] = arith.fptoui {{.*}} : f32 to ui8
// CHECK:       nest.store [[V]]
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xui8> {
  %y = graph.cast %x {to = ui8} : tensor<2x3xui8>
  func.return %y : tensor<2x3xui8>
}
