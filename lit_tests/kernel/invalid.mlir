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

// expected-error@+1 {{kernel.layout: [0, 2] is no order of dims}}
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

func.func @view_layout(%x: tensor<4x3xf32, #kernel.layout<[1, 0]>>) {
  // expected-error@+1 {{kernel.view: both sides must be row-major, without a layout}}
  %y = kernel.view %x : tensor<4x3xf32, #kernel.layout<[1, 0]>> to tensor<12xf32>
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
