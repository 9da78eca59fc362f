// RUN: isoform-opt %s --split-input-file --verify-diagnostics

// The text.

func.func @rank(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{a tensor of rank 2 is read at 1 indices}}
  %y = algebra.scope (a: 4) %x[a] : tensor<4xf32>
  func.return
}

// -----

func.func @unknown_iterator(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'k' is not an iterator of this scope}}
  %y = algebra.scope (a: 4) %x[a, k] : tensor<4xf32>
  func.return
}

// -----

func.func @product_of_iterators(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{an index may not multiply iterators}}
  %y = algebra.scope (a: 4) %x[a, a * a] : tensor<4xf32>
  func.return
}

// -----

func.func @division_by_zero(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{division of an index by zero}}
  %y = algebra.scope (a: 4) %x[a, a mod 0] : tensor<4xf32>
  func.return
}

// -----

func.func @undefined(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{value %z is used before it is defined}}
  %y = algebra.scope (a: 4) %z[a, a] : tensor<4xf32>
  func.return
}

// -----

func.func @no_tensor(%x: f32) {
  // expected-error@+1 {{a scope reads tensors only}}
  %y = algebra.scope (a: 4) %x[a, a] : tensor<4xf32>
  func.return
}

// -----

func.func @extents(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{the traversal extents [5] are not the shape of the result type}}
  %y = algebra.scope (a: 5) %x[a, a] : tensor<4xf32>
  func.return
}

// -----

func.func @unknown_function(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{unknown scalar function 'sqr', did you mean 'sqrt'?}}
  %y = algebra.scope (a: 4) sqr(%x[a, a]) : tensor<4xf32>
  func.return
}

// -----

func.func @arity(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'max' has another number of arguments: expected 2, found 1}}
  %y = algebra.scope (a: 4) max(%x[a, a]) : tensor<4xf32>
  func.return
}

// -----

func.func @elements_differ(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{operands of 'add' have different element types: f32 and i32}}
  %y = algebra.scope (a: 4) %x[a, a] + %i[a] : tensor<4xf32>
  func.return
}

// -----

func.func @another_result(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{a scope's body has another type: expected f64, found f32}}
  %y = algebra.scope (a: 4) %x[a, a] : tensor<4xf64>
  func.return
}

// -----

func.func @no_such_function(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'sin' is not defined for element type i32}}
  %y = algebra.scope (a: 4) sin(%i[a]) : tensor<4xi32>
  func.return
}

// -----

func.func @outside_is_no_literal(%x: tensor<4x6xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{`else` needs a literal}}
  %y = algebra.scope (a: 4) %x[a, a] else %x[a, a] : tensor<4xf32>
  func.return
}

// -----

// The verifier.

func.func @unknown_reduction(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': unknown reduction 'mean', expected one of sum, max, min, prod}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "mean", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @empty_summation(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': extents must be static, summations at least 1}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 0>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @dynamic(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': extents must be static, summations at least 1}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @missing_name(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': expected 2 distinct iterator names, found ['a']}}
  %y = "algebra.scope"(%x) <{iterators = ["a"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @name_twice(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': expected 2 distinct iterator names, found ['a', 'a']}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "a"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @odd_name(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': an iterator cannot be named 'a b'}}
  %y = "algebra.scope"(%x) <{iterators = ["a b", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @missing_map(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': one map and one outside value per operand are needed}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @missing_outside(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': one map and one outside value per operand are needed}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = []}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @missing_argument(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': the body needs one argument per operand}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0:
    %p = arith.constant 1.0 : f32
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @few_indices(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': read 0 has 1 indices over 2 iterators, expected 2 over 2}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @few_iterators(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': read 0 has 2 indices over 1 iterators, expected 2 over 2}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0) -> (d0, d0)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @argument_type(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': body argument 0 is f64, the operand holds f32}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f64):
    %q = arith.truncf %p : f64 to f32
    algebra.yield %q : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @symbols(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': read 0: index expressions have no symbols}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1)[s0] -> (d0, s0)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @negative_divisor(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': read 0: not quasi-affine}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1 floordiv -2)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @no_yield(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': the body must end with algebra.yield}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    llvm.unreachable
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @yields_another_type(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': the body yields f32, the result holds f64}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf64>
  func.return
}

// -----

func.func @op_in_no_table(%x: tensor<4x6xi32>) {
  // expected-error@+1 {{'algebra.scope': a body may not hold arith.divui}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: i32):
    %q = arith.divui %p, %p : i32
    algebra.yield %q : i32
  }) : (tensor<4x6xi32>) -> tensor<4xi32>
  func.return
}

// -----

func.func @value_of_outside(%x: tensor<4x6xf32>, %o: f32) {
  // expected-error@+1 {{'algebra.scope': arith.addf in the body reads a value of outside}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    %q = arith.addf %p, %o : f32
    algebra.yield %q : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @tensor_constant(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'algebra.scope': a body's constants are scalars}}
  %y = "algebra.scope"(%x) <{iterators = ["a", "k"], sums = array<i64: 6>, reduction = "sum", maps = [affine_map<(d0, d1) -> (d0, d1)>], outside = [0.0 : f64]}> ({
  ^bb0(%p: f32):
    %q = arith.constant dense<1.0> : tensor<2xf32>
    algebra.yield %p : f32
  }) : (tensor<4x6xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @extern_of_what_is_not_there(%x: tensor<5x2xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{axis 3 is not in [0, 2)}}
  %y = algebra.extern "graph.gather"(%x, %i) {axis = 3 : i64} : (tensor<5x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  func.return
}
