// RUN: isoform-opt %s --split-input-file --verify-diagnostics

// What a body takes and yields follows from the op.

func.func @endless(%x: tensor<4xf32>) {
  // expected-error@+1 {{nothing ends this loop: give trips, a count or a condition}}
  %y = control.loop carry(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    control.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @no_step(%x: tensor<4xf32>) {
  // expected-error@+1 {{control.loop: a body's arguments are (tensor<i64>, tensor<4xf32>), found (tensor<4xf32>)}}
  %y = control.loop carry(%x : tensor<4xf32>) attributes {trips = 2 : i64} -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>):
    control.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @no_condition(%x: tensor<4xf32>) {
  // expected-error@+1 {{control.loop: a body yields (tensor<i1>, tensor<4xf32>), found (tensor<4xf32>)}}
  %y = control.loop carry(%x : tensor<4xf32>) attributes {conditional} -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    control.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @rows_by_data(%n: tensor<i64>, %x: tensor<4xf32>) {
  // expected-error@+1 {{rows whose number data decide are written forward}}
  %y, %rows = control.loop times %n carry(%x : tensor<4xf32>) attributes {trips = 2 : i64, backward = array<i64: 1>} -> tensor<4xf32>, tensor<2x4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    control.yield %h, %h : tensor<4xf32>, tensor<4xf32>
  }
  func.return
}

// -----

func.func @too_few_rows(%s: tensor<3x4xf32>, %x: tensor<4xf32>) {
  // expected-error@+1 {{expected 5 rows, found tensor<3x4xf32>}}
  %y = control.loop carry(%x : tensor<4xf32>) scan(%s : tensor<3x4xf32>) attributes {trips = 5 : i64} -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %row: tensor<4xf32>):
    control.yield %h : tensor<4xf32>
  }
  func.return
}

// -----

func.func @captures_by_name(%go: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{Operation using value defined out of its IsolatedFromAbove parent}}
  %y = control.if %go -> tensor<4xf32> {
    control.yield %x : tensor<4xf32>
  } else {
    control.yield %x : tensor<4xf32>
  }
  func.return
}
