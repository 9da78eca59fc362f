// RUN: isoform-opt %s --split-input-file --verify-diagnostics

// The text.

func.func @undefined_operand() {
  // expected-error@+1 {{value %x is used before it is defined}}
  %y = kernel.loops (%0 = %x) {
    kernel.yield %0 : tensor<4xf32>
  } : tensor<4xf32>
  func.return
}

// -----

func.func @outside_value(%x: tensor<4xf32>) {
  // expected-error@+1 {{Operation using value defined out of its IsolatedFromAbove parent}}
  %y = kernel.loops () {
    %1 = algebra.scope (i: 4) %x[i] : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  func.return
}

// -----

// expected-error@+1 {{a layout has 'halo' and 'room', found 'padding'}}
func.func @layout_word(%x: tensor<4xf32, #kernel.layout<[0], padding [1], [1]>>) {
  func.return
}

// -----

// Layouts.

// expected-error@+1 {{kernel.layout: [0, 2] is not an order of dims}}
func.func @order(%x: tensor<4x4xf32, #kernel.layout<[0, 2]>>) {
  func.return
}

// -----

// expected-error@+1 {{kernel.layout: one halo width per dim is needed}}
func.func @halo(%x: tensor<4x4xf32, #kernel.layout<[0, 1], halo [1], [1]>>) {
  func.return
}

// -----

// expected-error@+1 {{kernel.layout: one width of room per dim is needed}}
func.func @room(%x: tensor<4x4xf32, #kernel.layout<[0, 1], room [1], [1]>>) {
  func.return
}

// -----

// expected-error@+1 {{kernel.layout: widths are at least 0}}
func.func @negative(%x: tensor<4x4xf32, #kernel.layout<[0, 1], halo [1, -1], [1, 1]>>) {
  func.return
}

// -----

func.func @rank(%x: tensor<4x4xf32, #kernel.layout<[0]>>) {
  // expected-error@+1 {{kernel.loops: the layout of tensor<4x4xf32, #kernel.layout<[0]>> has another rank}}
  %y = kernel.loops (%0 = %x) {
    kernel.yield %0 : tensor<4x4xf32>
  } : tensor<4x4xf32>
  func.return
}

// -----

// Regions.

func.func @argument_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{kernel.loops: region argument 0 is tensor<4xf64>, expected tensor<4xf32>}}
  %y = "kernel.loops"(%x) ({
  ^bb0(%0: tensor<4xf64>):
    "kernel.yield"(%0) : (tensor<4xf64>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf64>
  func.return
}

// -----

func.func @argument_count(%x: tensor<4xf32>) {
  // expected-error@+1 {{kernel.loops: the region needs one argument per operand}}
  %y = "kernel.loops"(%x, %x) ({
  ^bb0(%0: tensor<4xf32>):
    "kernel.yield"(%0) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @foreign_op(%x: tensor<4xf32>) {
  // expected-error@+1 {{kernel.gemm: a kernel may not hold graph.relu}}
  %y = kernel.gemm (%0 = %x) {
    %1 = graph.relu %0 : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  func.return
}

// -----

func.func @yielded_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{kernel.conv: the region must yield a value of the result's type}}
  %y = kernel.conv (%0 = %x) {
    kernel.yield %0 : tensor<4xf32>
  } : tensor<2x2xf32>
  func.return
}

// -----

func.func @no_yield(%x: tensor<4xf32>) {
  %y = kernel.loops (%0 = %x) {
    // expected-error@+1 {{terminates block in single-block region but is not a terminator}}
    %1 = algebra.scope (i: 4) %0[i] : tensor<4xf32>
  } : tensor<4xf32>
  func.return
}

// -----

// Views, joins and calls.

func.func @view_elements(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{kernel.view: tensor<4x3xf32> and tensor<6xf32> are not the same elements}}
  %y = kernel.view %x : tensor<4x3xf32> to tensor<6xf32>
  func.return
}

// -----

func.func @view_type(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{kernel.view: tensor<4x3xf32> and tensor<12xi32> are not the same elements}}
  %y = kernel.view %x : tensor<4x3xf32> to tensor<12xi32>
  func.return
}

// -----

func.func @view_outside(%x: tensor<4x3xf32, #kernel.layout<[0, 1], room [0, 0], [0, 1]>>) {
  // expected-error@+1 {{kernel.view: tensor<16xf32> is not inside tensor<4x3xf32, #kernel.layout<[0, 1], room [0, 0], [0, 1]>>}}
  %y = kernel.view %x : tensor<4x3xf32, #kernel.layout<[0, 1], room [0, 0], [0, 1]>> to tensor<16xf32>
  func.return
}

// -----

func.func @join_place(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error@+1 {{kernel.join: tensor<2x3xf32> does not lie at 0 along dim 1 of tensor<2x7xf32>}}
  %y = kernel.join %a, %b axis 1 : i64 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  func.return
}

// -----

func.func @join_whole(%a: tensor<2x3xf32, #kernel.layout<[0, 1], room [0, 0], [0, 4]>>) {
  // expected-error@+1 {{kernel.join: the parts do not make up dim 1}}
  %y = kernel.join %a axis 1 : i64 : (tensor<2x3xf32, #kernel.layout<[0, 1], room [0, 0], [0, 4]>>) -> tensor<2x7xf32>
  func.return
}

// -----

func.func @join_axis(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{kernel.join: dim 2 is not one of every part's}}
  %y = kernel.join %a axis 2 : i64 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

func.func @call_offsets(%x: tensor<2x3xf32>, %i: tensor<1xi64>) {
  // expected-error@+1 {{kernel.call: one offset per result is needed}}
  %y = kernel.call "graph.gather"(%x, %i) {axis = 0 : i64} offsets [0 : i64, 64 : i64] : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  func.return
}

// -----

// Contractions.

func.func @other_groups(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) {
  // expected-error@+1 {{kernel.gemm: the contraction is <m [n], n [m], k [k]>, but that of the first scope is <m [m], n [n], k [k]>}}
  %y = kernel.gemm (%0 = %a, %1 = %b) {
    %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
    kernel.yield %2 : tensor<4x8xf32>
  } contraction <m [n], n [m], k [k]> : tensor<4x8xf32>
  func.return
}

// -----

func.func @other_stride(%x: tensor<1x3x7xf32>, %w: tensor<8x3x3xf32>) {
  // expected-error@+1 {{kernel.conv: the contraction is <m [p], n [f], k [c, r], dims "nc0 * fc0 -> nf0", strides [1], dilations [1], pads [0]>, but that of the first scope is <m [p], n [f], k [c, r], dims "nc0 * fc0 -> nf0", strides [2], dilations [1], pads [0]>}}
  %y = kernel.conv (%0 = %x, %1 = %w) {
    %2 = algebra.scope (n: 1, f: 8, p: 3) sum (c: 3, r: 3) %0[n, c, 2 * p + r] * %1[f, c, r] : tensor<1x8x3xf32>
    kernel.yield %2 : tensor<1x8x3xf32>
  } contraction <m [p], n [f], k [c, r], dims "nc0 * fc0 -> nf0", strides [1], dilations [1], pads [0]> : tensor<1x8x3xf32>
  func.return
}

// -----

func.func @no_product(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{kernel.gemm: the first scope is not a sum of products of two reads}}
  %y = kernel.gemm (%0 = %a) {
    %1 = algebra.scope (m: 4) sum (k: 8) %0[m, k] : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  func.return
}

// -----

func.func @no_convolution(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) {
  // expected-error@+1 {{kernel.conv: the first scope is not a convolution}}
  %y = kernel.conv (%0 = %a, %1 = %b) {
    %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
    kernel.yield %2 : tensor<4x8xf32>
  } : tensor<4x8xf32>
  func.return
}

// -----

func.func @without(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) {
  // expected-error@+1 {{kernel.gemm: the contraction is none, but that of the first scope is <m [m], n [n], k [k]>}}
  %y = "kernel.gemm"(%a, %b) ({
  ^bb0(%0: tensor<4x16xf32>, %1: tensor<16x8xf32>):
    %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
    kernel.yield %2 : tensor<4x8xf32>
  }) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  func.return
}

// -----

func.func @part(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) {
  %y = kernel.gemm (%0 = %a, %1 = %b) {
    %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
    kernel.yield %2 : tensor<4x8xf32>
  // expected-error@+1 {{a contraction has no part 'rows'}}
  } contraction <rows [m], n [n], k [k]> : tensor<4x8xf32>
  func.return
}

// -----

func.func @iterator(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>) {
  %y = kernel.gemm (%0 = %a, %1 = %b) {
    %2 = algebra.scope (m: 4, n: 8) sum (k: 16) %0[m, k] * %1[k, n] : tensor<4x8xf32>
    kernel.yield %2 : tensor<4x8xf32>
  // expected-error@+1 {{the scope has no iterator 'j'}}
  } contraction <m [m], n [j], k [k]> : tensor<4x8xf32>
  func.return
}

// -----

func.func @call_of_what_is_not_there(%x: tensor<5x8xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{axis 2 is not in [0, 2)}}
  %y = kernel.call "graph.gather"(%x, %i) {axis = 2 : i64} : (tensor<5x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  func.return
}
