// RUN: isoform-opt %s | isoform-opt | filecheck %s

// What is read outside of an operand may be infinite: a maximum with pads.
// CHECK: nest.load %x[%i - 1] if [%i - 1] < [4] else -inf : memref<4xf32>
nest.kernel @k (%x: memref<4xf32>, %y: memref<6xf32>) {
  nest.for %i < 6 {
    %0 = nest.load %x[%i - 1] if [%i - 1] < [4] else -inf : memref<4xf32>
    nest.store %0, %y[%i] : memref<6xf32>
  }
}
