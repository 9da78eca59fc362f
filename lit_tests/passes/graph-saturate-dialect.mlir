// RUN: isoform-opt %s --plugin %examples/ring_dialect.py -p 'graph-saturate{dialect=ring rules="%examples/ring.rules" op-costs="ring.mul=4","ring.square=3"}' | filecheck %s

// a b + a c + a d = a (b + c + d): one product instead of three, found through every order of sums.
// CHECK-LABEL: func.func @factor
// CHECK:       [[S:%\w+]] = ring.add
// CHECK-NEXT:  [[T:%\w+]] = ring.add
// CHECK-NEXT:  %{{\w+}} = ring.mul
// CHECK-SAME:  isoform.rules
// CHECK-NEXT:  func.return
func.func @factor(%a: i64, %b: i64, %c: i64, %d: i64) -> i64 {
  %ab = ring.mul %a, %b : i64
  %ac = ring.mul %c, %a : i64
  %ad = ring.mul %a, %d : i64
  %s = ring.add %ab, %ac : i64
  %t = ring.add %s, %ad : i64
  func.return %t : i64
}

// a a + (a b + a b) + b b = (a + b)^2.
// CHECK-LABEL: func.func @binomial
// CHECK:       [[S:%\w+]] = ring.add %{{a|b}}, %{{a|b}}
// CHECK-NEXT:  %{{\w+}} = ring.square [[S]]
// CHECK-NEXT:  func.return
func.func @binomial(%a: i64, %b: i64) -> i64 {
  %aa = ring.mul %a, %a : i64
  %ab = ring.mul %a, %b : i64
  %two = ring.add %ab, %ab : i64
  %s = ring.add %aa, %two : i64
  %bb = ring.mul %b, %b : i64
  %t = ring.add %s, %bb : i64
  func.return %t : i64
}

// What a region or an unknown effect holds stays as it is, and its operands are kept.
// CHECK-LABEL: func.func @anchors
// CHECK:       [[X:%\w+]] = ring.scale %a by 3 : i64 -> i64 {isoform.rules = ["scales-add"]}
// CHECK-NEXT:  "test.op"([[X]])
func.func @anchors(%a: i64) {
  %two = ring.scale %a by 2 : i64 -> i64
  %one = ring.scale %a by 1 : i64 -> i64
  %x = ring.add %two, %one : i64
  "test.op"(%x) : (i64) -> ()
  func.return
}
