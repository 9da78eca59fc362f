// RUN: isoform-opt %s | isoform-opt | filecheck %s
// RUN: isoform-opt %s --print-op-generic | isoform-opt | filecheck %s

// Places, bounds and ends of loops that depend on data.

// CHECK: nest.kernel @search (%x: memref<64xf32>, %at: memref<8xi64>, %y: memref<8xui8>) {
// CHECK-NEXT: nest.for %i < 8 parallel {
// CHECK-NEXT: %first = nest.index [8 * %i]
// CHECK-NEXT: %end = nest.read %at[%first] : memref<8xi64>
// CHECK-NEXT: nest.range %k from %first to %end {
// CHECK-NEXT: %0 = nest.read %x[%k] : memref<64xf32>
// CHECK-NEXT: %1 = nest.remainder %0, %0 : f32
// CHECK-NEXT: %2 = arith.fptoui %1 : f32 to i8
// CHECK-NEXT: nest.write %2, %y[%k] : memref<8xui8>
// CHECK-NEXT: }
// CHECK-NEXT: nest.repeat {
// CHECK-NEXT: %value = nest.read %y[%end] : memref<8xui8>
// CHECK-NEXT: %more = arith.cmpi ult, %first, %end : i64
// CHECK-NEXT: nest.again %more
// CHECK-NEXT: }
// CHECK-NEXT: nest.copy %end from %x[%first] : memref<64xf32> to %x[%end] : memref<64xf32>
nest.kernel @search (%x: memref<64xf32>, %at: memref<8xi64>, %y: memref<8xui8>) {
  nest.for %i < 8 parallel {
    %first = nest.index [8 * %i]
    %end = nest.read %at[%first] : memref<8xi64>
    nest.range %k from %first to %end {
      %0 = nest.read %x[%k] : memref<64xf32>
      %1 = nest.remainder %0, %0 : f32
      %2 = arith.fptoui %1 : f32 to i8
      nest.write %2, %y[%k] : memref<8xui8>
    }
    nest.repeat {
      %value = nest.read %y[%end] : memref<8xui8>
      %more = arith.cmpi ult, %first, %end : i64
      nest.again %more
    }
    nest.copy %end from %x[%first] : memref<64xf32> to %x[%end] : memref<64xf32>
  }
}
