// RUN: isoform-opt %s --fast-math -p 'lower-precision{to="bf16"}' | filecheck %s
// RUN: isoform-opt %s --fast-math -p 'lower-precision{to="f16" ops=1}' | filecheck %s --check-prefix=ONE
// RUN: isoform-opt %s --fast-math -p 'lower-precision{to="int8-dynamic"},integer-products,dce' | filecheck %s --check-prefix=BYTES
// RUN: not isoform-opt %s -p 'lower-precision{to="bf16"}' 2>&1 | filecheck %s --check-prefix=VALUES
// RUN: not isoform-opt %s --fast-math -p 'lower-precision{to="bf61"}' 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not isoform-opt %s --fast-math -p 'lower-precision{to="bf16" ops=0,3}' 2>&1 | filecheck %s --check-prefix=NUMBER

// VALUES: error: pass 'lower-precision': it may change values: it needs --fast-math
// KIND: error: pass 'lower-precision': no precision 'bf61' (did you mean 'bf16'?)
// NUMBER: error: pass 'lower-precision': no product 3 to lower: expected numbers below 3

func.func @main(%x: tensor<4x8xf32>, %i: tensor<1x2x5x5xf32>) -> (tensor<4x4xf32>, tensor<1x3x3x3xf32>) {
  %w = graph.weight @w : tensor<8x6xf32>
  %v = graph.weight @v : tensor<3x2x3x3xf32>
  %b = graph.weight @b : tensor<3xf32>
  // Operands are rounded, and the sum once.
  // CHECK: %[[X:.*]] = graph.cast %x {to = bf16} : tensor<4x8xbf16>
  // CHECK: %[[W:.*]] = graph.cast %w {to = bf16} : tensor<8x6xbf16>
  // CHECK: %[[P:.*]] = graph.matmul %[[X]], %[[W]] : tensor<4x6xbf16>
  // CHECK: %y = graph.cast %[[P]] {to = f32} attributes {isoform.rules = ["lower-precision"]} : tensor<4x6xf32>
  %y = graph.matmul %x, %w : tensor<4x6xf32>
  // CHECK: graph.matmul {{.*}} {transpose_b = true} : tensor<4x4xbf16>
  %z = graph.matmul %y, %y {transpose_b = true} : tensor<4x4xf32>
  // CHECK: graph.conv {{.*}} : tensor<1x3x3x3xbf16>
  %c = graph.conv %i, %v, %b {strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x3x3x3xf32>
  func.return %z, %c : tensor<4x4xf32>, tensor<1x3x3x3xf32>
}

// Of three products the second alone.
// ONE: graph.matmul {{.*}} : tensor<4x6xf32>
// ONE: graph.matmul {{.*}} : tensor<4x4xf16>
// ONE: graph.conv {{.*}} : tensor<1x3x3x3xf32>

// Weights are quantised, and the data as they come; a product of two results stays.
// BYTES: graph.cast {{.*}} {to = ui8} : tensor<4x8xui8>
// BYTES: graph.cast {{.*}} {to = i8} : tensor<8x6xi8>
// BYTES: graph.matmul {{.*}} : tensor<4x6xi32>
// BYTES: graph.matmul {{.*}} {transpose_b = true} : tensor<4x4xf32>
// BYTES: graph.conv {{.*}} : tensor<1x3x3x3xi32>
