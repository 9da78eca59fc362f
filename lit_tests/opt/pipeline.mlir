// RUN: isoform-opt %s -p canonicalize,cse | filecheck %s
// RUN: isoform-opt %s -p " canonicalize , cse " | filecheck %s
// RUN: isoform-opt %s -p cse --explain --time-passes 2>&1 >/dev/null | filecheck %s --check-prefix=REPORT
// RUN: isoform-opt %s -p cse,canonicalize --print-between-passes 2>/dev/null | filecheck %s

// CHECK:      func.func @twice(%x: i32) -> i32 {
// CHECK-NEXT:   %y = arith.addi %x, %x : i32
// CHECK-NEXT:   %r = arith.muli %y, %y : i32
// CHECK-NEXT:   func.return %r : i32
// CHECK-NEXT: }

// REPORT: Pass cse took
// REPORT-NEXT: cse: 0 rewrites; arith.addi 2 -> 1
func.func @twice(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  %z = arith.addi %x, %x : i32
  %r = arith.muli %y, %z : i32
  func.return %r : i32
}
