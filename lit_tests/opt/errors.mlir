// RUN: isoform-opt %s --split-input-file --verify-diagnostics

// expected-error@+2 {{unknown operation 'arith.adi' (did you mean 'arith.addi'?)}}
func.func @unknown_operation(%x: i32) -> i32 {
  %y = arith.adi %x, %x : i32
  func.return %y : i32
}

// -----

// expected-error@+1 {{unknown dialect 'arit' of operation 'arit.addi' (did you mean 'arith'?)}}
%y = arit.addi %x, %x : i32

// -----

// expected-error@below {{unknown type or attribute 'llvm.ptrr' (did you mean 'llvm.ptr'?)}}
func.func @unknown_type(%x: !llvm.ptrr)

// -----

func.func @undefined_value(%long: i32) -> i32 {
  // expected-error@+1 {{%logn is used but nothing defines it (did you mean '%long'?)}}
  func.return %logn : i32
}

// -----

func.func @wrong_number_of_operands(%x: i32) -> i32 {
  %y = "arith.addi"(%x) : (i32) -> i32 // expected-error@same {{Expected 2 operands, but got 1}}
  func.return %y : i32
}

// -----

func.func @use_before_definition(%x: i32) -> i32 {
  // expected-error@+1 {{'arith.addi': operand #1 %z is used before its definition}}
  %y = arith.addi %x, %z : i32
  %z = arith.addi %x, %x : i32
  func.return %y : i32
}

// -----

func.func @definition_on_one_path_only(%c: i1, %x: i32) -> i32 {
  cf.cond_br %c, ^left, ^right
^left:
  %y = arith.addi %x, %x : i32
  cf.br ^join
^right:
  cf.br ^join
^join:
  // expected-error@+1 {{operand #0 %y does not dominate this use}}
  func.return %y : i32
}

// -----

// An unreachable block may use anything; a loop may use what dominates it.
func.func @fine(%c: i1, %x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  cf.br ^loop
^loop:
  %z = arith.addi %y, %x : i32
  cf.cond_br %c, ^loop, ^end
^end:
  func.return %z : i32
^nowhere:
  func.return %z : i32
}
