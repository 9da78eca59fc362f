// RUN: isoform-opt %s | isoform-opt | filecheck %s
// RUN: isoform-opt %s --print-op-generic | isoform-opt | filecheck %s

// CHECK-LABEL: func.func @unary(
func.func @unary(%x: tensor<2x3xf32>) {
  %0 = graph.abs %x : tensor<2x3xf32>
  %1 = graph.neg %x : tensor<2x3xf32>
  %2 = graph.exp %x : tensor<2x3xf32>
  %3 = graph.log %x : tensor<2x3xf32>
  %4 = graph.sqrt %x : tensor<2x3xf32>
  %5 = graph.tanh %x : tensor<2x3xf32>
  %6 = graph.erf %x : tensor<2x3xf32>
  %7 = graph.floor %x : tensor<2x3xf32>
  %8 = graph.ceil %x : tensor<2x3xf32>
  %9 = graph.round %x : tensor<2x3xf32>
  %10 = graph.sin %x : tensor<2x3xf32>
  %11 = graph.cos %x : tensor<2x3xf32>
  %12 = graph.tan %x : tensor<2x3xf32>
  %13 = graph.asin %x : tensor<2x3xf32>
  %14 = graph.acos %x : tensor<2x3xf32>
  %15 = graph.atan %x : tensor<2x3xf32>
  %16 = graph.sinh %x : tensor<2x3xf32>
  %17 = graph.cosh %x : tensor<2x3xf32>
  %18 = graph.asinh %x : tensor<2x3xf32>
  %19 = graph.acosh %x : tensor<2x3xf32>
  %20 = graph.atanh %x : tensor<2x3xf32>
  %21 = graph.relu %x : tensor<2x3xf32>
  %22 = graph.sigmoid %x : tensor<2x3xf32>
  %softplus = graph.softplus %x : tensor<2x3xf32>
  %23 = graph.reciprocal %x : tensor<2x3xf32>
  %24 = graph.leaky_relu %x : tensor<2x3xf32>
  %25 = graph.elu %x : tensor<2x3xf32>
  %26 = graph.hard_sigmoid %x : tensor<2x3xf32>
  %27 = graph.clip %x : tensor<2x3xf32>
  %28 = graph.sign %x : tensor<2x3xf32>
  %29 = graph.is_nan %x : tensor<2x3xi1>
  %30 = graph.cast %x {to = i64} : tensor<2x3xi64>
  // CHECK: graph.abs %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.neg %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.exp %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.log %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.sqrt %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.tanh %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.erf %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.floor %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.ceil %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.round %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.sin %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.cos %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.tan %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.asin %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.acos %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.atan %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.sinh %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.cosh %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.asinh %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.acosh %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.atanh %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.relu %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.sigmoid %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.softplus %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.reciprocal %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.leaky_relu %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.elu %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.hard_sigmoid %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.clip %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.sign %x : tensor<2x3xf32>
  // CHECK-NEXT: graph.is_nan %x : tensor<2x3xi1>
  // CHECK-NEXT: graph.cast %x {to = i64} : tensor<2x3xi64>
  func.return
}

// CHECK-LABEL: func.func @unary_of_other_elements(
func.func @unary_of_other_elements(%h: tensor<4xf16>, %b: tensor<4xbf16>, %d: tensor<4xf64>, %i: tensor<4xi32>, %p: tensor<4xi1>) {
  %0 = graph.relu %h : tensor<4xf16>
  %1 = graph.exp %b : tensor<4xbf16>
  %2 = graph.tanh %d : tensor<4xf64>
  %3 = graph.abs %i : tensor<4xi32>
  %4 = graph.not %p : tensor<4xi1>
  %5 = graph.cast %p {to = f32} : tensor<4xf32>
  %6 = graph.cast %d {to = ui8} : tensor<4xui8>
  %7 = graph.cast %6 {to = i4} : tensor<4xi4>
  %8 = graph.cast %h {to = f8E4M3FN} : tensor<4xf8E4M3FN>
  %9 = graph.cast %8 {to = f4E2M1FN} : tensor<4xf4E2M1FN>
  %10 = graph.reshape %9 {shape = [2, 2]} : tensor<2x2xf4E2M1FN>
  // CHECK: graph.relu %h : tensor<4xf16>
  // CHECK-NEXT: graph.exp %b : tensor<4xbf16>
  // CHECK-NEXT: graph.tanh %d : tensor<4xf64>
  // CHECK-NEXT: graph.abs %i : tensor<4xi32>
  // CHECK-NEXT: graph.not %p : tensor<4xi1>
  // CHECK-NEXT: graph.cast %p {to = f32} : tensor<4xf32>
  // CHECK-NEXT: graph.cast %d {to = ui8} : tensor<4xui8>
  // CHECK-NEXT: graph.cast %{{.*}} {to = i4} : tensor<4xi4>
  // CHECK-NEXT: graph.cast %h {to = f8E4M3FN} : tensor<4xf8E4M3FN>
  // CHECK-NEXT: graph.cast %{{.*}} {to = f4E2M1FN} : tensor<4xf4E2M1FN>
  // CHECK-NEXT: graph.reshape %{{.*}} {shape = [2, 2]} : tensor<2x2xf4E2M1FN>
  func.return
}

// CHECK-LABEL: func.func @binary(
func.func @binary(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %p: tensor<2x3xi1>) {
  %0 = graph.add %a, %b : tensor<2x3xf32>
  %1 = graph.sub %a, %b : tensor<2x3xf32>
  %2 = graph.mul %a, %b : tensor<2x3xf32>
  %3 = graph.div %a, %b : tensor<2x3xf32>
  %4 = graph.max %a, %b : tensor<2x3xf32>
  %5 = graph.min %a, %b : tensor<2x3xf32>
  %6 = graph.pow %a, %b : tensor<2x3xf32>
  %7 = graph.equal %a, %b : tensor<2x3xi1>
  %8 = graph.less %a, %b : tensor<2x3xi1>
  %9 = graph.less_equal %a, %b : tensor<2x3xi1>
  %10 = graph.greater %a, %b : tensor<2x3xi1>
  %11 = graph.greater_equal %a, %b : tensor<2x3xi1>
  %12 = graph.and %p, %p : tensor<2x3xi1>
  %13 = graph.or %p, %p : tensor<2x3xi1>
  %14 = graph.xor %p, %p : tensor<2x3xi1>
  %15 = graph.where %p, %a, %b : tensor<2x3xf32>
  // CHECK: graph.add %a, %b : tensor<2x3xf32>
  // CHECK-NEXT: graph.sub %a, %b : tensor<2x3xf32>
  // CHECK-NEXT: graph.mul %a, %b : tensor<2x3xf32>
  // CHECK-NEXT: graph.div %a, %b : tensor<2x3xf32>
  // CHECK-NEXT: graph.max %a, %b : tensor<2x3xf32>
  // CHECK-NEXT: graph.min %a, %b : tensor<2x3xf32>
  // CHECK-NEXT: graph.pow %a, %b : tensor<2x3xf32>
  // CHECK-NEXT: graph.equal %a, %b : tensor<2x3xi1>
  // CHECK-NEXT: graph.less %a, %b : tensor<2x3xi1>
  // CHECK-NEXT: graph.less_equal %a, %b : tensor<2x3xi1>
  // CHECK-NEXT: graph.greater %a, %b : tensor<2x3xi1>
  // CHECK-NEXT: graph.greater_equal %a, %b : tensor<2x3xi1>
  // CHECK-NEXT: graph.and %p, %p : tensor<2x3xi1>
  // CHECK-NEXT: graph.or %p, %p : tensor<2x3xi1>
  // CHECK-NEXT: graph.xor %p, %p : tensor<2x3xi1>
  // CHECK-NEXT: graph.where %p, %a, %b : tensor<2x3xf32>
  func.return
}

// A property that has its default is not printed.
// CHECK-LABEL: func.func @properties(
func.func @properties(%x: tensor<2x3xf32>) {
  %0 = graph.leaky_relu %x {alpha = 0.25} : tensor<2x3xf32>
  %1 = graph.elu %x {alpha = 1.0e-30} : tensor<2x3xf32>
  %2 = graph.hard_sigmoid %x {alpha = 0.25, beta = -0.5} : tensor<2x3xf32>
  %3 = graph.clip %x {min = 0.0, max = 6.0} : tensor<2x3xf32>
  %4 = graph.clip %x {min = 0.0} : tensor<2x3xf32>
  // CHECK: graph.leaky_relu %x {alpha = 0.25} : tensor<2x3xf32>
  // CHECK-NEXT: graph.elu %x {alpha = 1.0e-30} : tensor<2x3xf32>
  // CHECK-NEXT: graph.hard_sigmoid %x {alpha = 0.25, beta = -0.5} : tensor<2x3xf32>
  // CHECK-NEXT: graph.clip %x {min = 0.0, max = 6.0} : tensor<2x3xf32>
  // CHECK-NEXT: graph.clip %x {min = 0.0} : tensor<2x3xf32>
  func.return
}

// CHECK-LABEL: func.func @contractions(
func.func @contractions(%x: tensor<2x4x8x8xf32>, %k: tensor<6x2x3x3xf32>, %t: tensor<4x3x4x4xf32>, %b6: tensor<6xf32>, %a: tensor<2x4x5xf32>, %b: tensor<2x5x3xf32>, %c: tensor<2x5x4xf32>, %w: tensor<2x12xf32>) {
  %0 = graph.conv %x, %k {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 2} : tensor<2x6x8x8xf32>
  %1 = graph.conv %x, %k, %b6 {strides = [2, 1], pads = [1, 0, 2, 1], dilations = [2, 1], groups = 2} : tensor<2x6x4x7xf32>
  %2 = graph.conv_transpose %x, %t {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], output_padding = [1, 0]} : tensor<2x3x17x16xf32>
  %3 = graph.matmul %a, %b : tensor<2x4x3xf32>
  %4 = graph.matmul %c, %b {transpose_a = true} : tensor<2x4x3xf32>
  %5 = graph.matmul %a, %a {transpose_b = true} : tensor<2x4x4xf32>
  %6 = graph.g2bmm %a, %a {width = 1, dilation = 3} : tensor<2x4x3xf32>
  %7 = graph.g2bmm %a, %a {width = 2, dilation = 1} : tensor<2x4x5xf32>
  %8 = graph.gbmm %7, %6 {dilation = 2} : tensor<2x4x3xf32>
  %9 = graph.resample %b6, %w {axis = 0, step = 1, shift = -1, per = 2} : tensor<12xf32>
  // CHECK: graph.conv %x, %k {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 2} : tensor<2x6x8x8xf32>
  // CHECK-NEXT: graph.conv %x, %k, %b6 {strides = [2, 1], pads = [1, 0, 2, 1], dilations = [2, 1], groups = 2} : tensor<2x6x4x7xf32>
  // CHECK-NEXT: graph.conv_transpose %x, %t {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1], output_padding = [1, 0]} : tensor<2x3x17x16xf32>
  // CHECK-NEXT: graph.matmul %a, %b : tensor<2x4x3xf32>
  // CHECK-NEXT: graph.matmul %c, %b {transpose_a = true} : tensor<2x4x3xf32>
  // CHECK-NEXT: graph.matmul %a, %a {transpose_b = true} : tensor<2x4x4xf32>
  // CHECK-NEXT: graph.g2bmm %a, %a {width = 1, dilation = 3} : tensor<2x4x3xf32>
  // CHECK-NEXT: graph.g2bmm %a, %a {width = 2} : tensor<2x4x5xf32>
  // CHECK-NEXT: graph.gbmm %{{.*}}, %{{.*}} {dilation = 2} : tensor<2x4x3xf32>
  // CHECK-NEXT: graph.resample %b6, %w {axis = 0, shift = -1, per = 2} : tensor<12xf32>
  func.return
}

// CHECK-LABEL: func.func @pools(
func.func @pools(%x: tensor<1x2x7x7xf32>) {
  %0 = graph.max_pool %x {kernel = [3, 3], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x2x3x3xf32>
  %1 = graph.max_pool %x {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], ceil_mode = true} : tensor<1x2x4x4xf32>
  %2 = graph.avg_pool %x {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x2x7x7xf32>
  %3 = graph.avg_pool %x {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], count_include_pad = true} : tensor<1x2x7x7xf32>
  // CHECK: graph.max_pool %x {kernel = [3, 3], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x2x3x3xf32>
  // CHECK-NEXT: graph.max_pool %x {kernel = [2, 2], strides = [2, 2], pads = [0, 0, 0, 0], dilations = [1, 1], ceil_mode = true} : tensor<1x2x4x4xf32>
  // CHECK-NEXT: graph.avg_pool %x {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]} : tensor<1x2x7x7xf32>
  // CHECK-NEXT: graph.avg_pool %x {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], count_include_pad = true} : tensor<1x2x7x7xf32>
  func.return
}

// CHECK-LABEL: func.func @reductions(
func.func @reductions(%x: tensor<2x3x4xf32>) {
  %0 = graph.reduce_sum %x {axes = [1]} : tensor<2x1x4xf32>
  %1 = graph.reduce_max %x {axes = [0, 2], keep_dims = false} : tensor<3xf32>
  %2 = graph.reduce_min %x {axes = [2], keep_dims = false} : tensor<2x3xf32>
  %3 = graph.reduce_prod %x {axes = [0, 1, 2], keep_dims = false} : tensor<f32>
  %4 = graph.reduce_mean %x {axes = [1, 2]} : tensor<2x1x1xf32>
  %5 = graph.softmax %x {axis = 2} : tensor<2x3x4xf32>
  %6 = graph.log_softmax %x {axis = 0} : tensor<2x3x4xf32>
  // CHECK: graph.reduce_sum %x {axes = [1]} : tensor<2x1x4xf32>
  // CHECK-NEXT: graph.reduce_max %x {axes = [0, 2], keep_dims = false} : tensor<3xf32>
  // CHECK-NEXT: graph.reduce_min %x {axes = [2], keep_dims = false} : tensor<2x3xf32>
  // CHECK-NEXT: graph.reduce_prod %x {axes = [0, 1, 2], keep_dims = false} : tensor<f32>
  // CHECK-NEXT: graph.reduce_mean %x {axes = [1, 2]} : tensor<2x1x1xf32>
  // CHECK-NEXT: graph.softmax %x {axis = 2} : tensor<2x3x4xf32>
  // CHECK-NEXT: graph.log_softmax %x {axis = 0} : tensor<2x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @normalisations(
func.func @normalisations(%x: tensor<2x3x4xf32>, %c: tensor<3xf32>, %r: tensor<4xf32>) {
  %0 = graph.layer_norm %x, %r {axis = 2} : tensor<2x3x4xf32>
  %1 = graph.layer_norm %x, %r, %r {axis = 2, epsilon = 1.0e-12} : tensor<2x3x4xf32>
  %2 = graph.instance_norm %x, %c, %c : tensor<2x3x4xf32>
  %3 = graph.batch_norm %x, %c, %c, %c, %c {epsilon = 0.001} : tensor<2x3x4xf32>
  %4 = graph.lrn %x {size = 5} : tensor<2x3x4xf32>
  // CHECK: graph.layer_norm %x, %r {axis = 2} : tensor<2x3x4xf32>
  // CHECK-NEXT: graph.layer_norm %x, %r, %r {axis = 2, epsilon = 1.0e-12} : tensor<2x3x4xf32>
  // CHECK-NEXT: graph.instance_norm %x, %c, %c : tensor<2x3x4xf32>
  // CHECK-NEXT: graph.batch_norm %x, %c, %c, %c, %c {epsilon = 0.001} : tensor<2x3x4xf32>
  // CHECK-NEXT: graph.lrn %x {size = 5} : tensor<2x3x4xf32>
  func.return
}

// CHECK-LABEL: func.func @shapes(
func.func @shapes(%x: tensor<2x3xf32>, %s: tensor<f32>) {
  %0 = graph.reshape %x {shape = [3, 2]} : tensor<3x2xf32>
  %1 = graph.reshape %s {shape = [1]} : tensor<1xf32>
  %2 = graph.transpose %x {perm = [1, 0]} : tensor<3x2xf32>
  %3 = graph.broadcast %x {shape = [4, 2, 3], dims = [1, 2]} : tensor<4x2x3xf32>
  %4 = graph.broadcast %s {shape = [2], dims = []} : tensor<2xf32>
  %5 = graph.concat %x, %x, %x {axis = 1} : tensor<2x9xf32>
  %6 = graph.slice %x {starts = [1, 2], sizes = [2, 2], steps = [-1, -2]} : tensor<2x2xf32>
  %7 = graph.pad %x {pads = [0, 1, -1, 0], fill = -inf} : tensor<1x4xf32>
  %8:2 = graph.split %x {axis = 1, sizes = [1, 2]} : tensor<2x1xf32>, tensor<2x2xf32>
  // CHECK: graph.reshape %x {shape = [3, 2]} : tensor<3x2xf32>
  // CHECK-NEXT: graph.reshape %s {shape = [1]} : tensor<1xf32>
  // CHECK-NEXT: graph.transpose %x {perm = [1, 0]} : tensor<3x2xf32>
  // CHECK-NEXT: graph.broadcast %x {shape = [4, 2, 3], dims = [1, 2]} : tensor<4x2x3xf32>
  // CHECK-NEXT: graph.broadcast %s {shape = [2], dims = []} : tensor<2xf32>
  // CHECK-NEXT: graph.concat %x, %x, %x {axis = 1} : tensor<2x9xf32>
  // CHECK-NEXT: graph.slice %x {starts = [1, 2], sizes = [2, 2], steps = [-1, -2]} : tensor<2x2xf32>
  // CHECK-NEXT: graph.pad %x {pads = [0, 1, -1, 0], fill = -inf} : tensor<1x4xf32>
  // CHECK-NEXT: graph.split %x {axis = 1, sizes = [1, 2]} : tensor<2x1xf32>, tensor<2x2xf32>
  func.return
}

// CHECK-LABEL: func.func @data(
func.func @data(%x: tensor<2x3xf32>, %i: tensor<4xi64>) {
  %0 = graph.weight @small : tensor<2x3xf32>
  %1 = graph.weight @"odd name/1:0" : tensor<2x3xf32>
  %2 = graph.constant dense<[1.000000e+00, -2.500000e+00]> : tensor<2xf32>
  %3 = graph.constant dense<7> : tensor<i64>
  %4 = graph.constant dense<[true, false]> : tensor<2xi1>
  %5 = graph.gather %x, %i {axis = 1} : tensor<2x4xf32>
  %6 = graph.gather %x, %i : tensor<4x3xf32>
  %7 = graph.arg_max %x {axis = 1} : tensor<2x1xi64>
  %iota = graph.iota {size = [5]} : tensor<5xi64>
  %from = graph.iota {start = [3], size = [5], step = [-2]} : tensor<5xi64>
  %8 = graph.opaque "NonZero"(%x) node "0a01" opset ["=18"] : (tensor<2x3xf32>) -> tensor<2x4xi64>
  // CHECK: graph.weight @small : tensor<2x3xf32>
  // CHECK-NEXT: graph.weight @"odd name/1:0" : tensor<2x3xf32>
  // CHECK-NEXT: graph.constant dense<[1.000000e+00, -2.500000e+00]> : tensor<2xf32>
  // CHECK-NEXT: graph.constant dense<7> : tensor<i64>
  // CHECK-NEXT: graph.constant dense<[true, false]> : tensor<2xi1>
  // CHECK-NEXT: graph.gather %x, %i {axis = 1} : tensor<2x4xf32>
  // CHECK-NEXT: graph.gather %x, %i : tensor<4x3xf32>
  // CHECK-NEXT: graph.arg_max %x {axis = 1} : tensor<2x1xi64>
  // CHECK-NEXT: graph.iota {size = [5]} : tensor<5xi64>
  // CHECK-NEXT: graph.iota {start = [3], size = [5], step = [-2]} : tensor<5xi64>
  // CHECK-NEXT: graph.opaque "NonZero"(%x) node "0a01" opset ["=18"] : (tensor<2x3xf32>) -> tensor<2x4xi64>
  func.return
}

// CHECK-LABEL: func.func @rules_and_empty_extents(
func.func @rules_and_empty_extents(%x: tensor<0x3xf32>) {
  %0 = graph.relu %x attributes {isoform.rules = ["relu-idempotent"]} : tensor<0x3xf32>
  %1 = graph.reduce_sum %x {axes = [0]} : tensor<1x3xf32>
  %2 = graph.matmul %x, %x {transpose_a = true} : tensor<3x3xf32>
  // CHECK: graph.relu %x attributes {isoform.rules = ["relu-idempotent"]} : tensor<0x3xf32>
  // CHECK-NEXT: graph.reduce_sum %x {axes = [0]} : tensor<1x3xf32>
  // CHECK-NEXT: graph.matmul %x, %x {transpose_a = true} : tensor<3x3xf32>
  func.return
}
