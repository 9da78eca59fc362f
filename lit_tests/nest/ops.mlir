// RUN: isoform-opt %s | isoform-opt | filecheck %s
// RUN: isoform-opt %s --print-op-generic | isoform-opt | filecheck %s

// Loops of every kind; addresses are expressions over iterators.

// CHECK: nest.kernel @loops (%x: memref<96xf32>, %y: memref<96xf32>) {
// CHECK-NEXT: nest.for %i < 2 parallel {
// CHECK-NEXT: nest.for %j < 3 unroll 1 {
// CHECK-NEXT: nest.for %k < 2 unrolled {
// CHECK-NEXT: nest.for %l < 8 vector {
// CHECK-NEXT: %0 = nest.load %x[48 * %i + 16 * %j + 8 * %k + %l] room 96 : memref<96xf32>
// CHECK-NEXT: %1 = math.exp %0 : f32
// CHECK-NEXT: nest.store %1, %y[48 * %i + 16 * %j + 8 * %k + %l] nontemporal 64 : memref<96xf32>
nest.kernel @loops (%x: memref<96xf32>, %y: memref<96xf32>) {
  nest.for %i < 2 parallel {
    nest.for %j < 3 unroll 1 {
      nest.for %k < 2 unrolled {
        nest.for %l < 8 vector {
          %0 = nest.load %x[48 * %i + 16 * %j + 8 * %k + %l] room 96 : memref<96xf32>
          %1 = math.exp %0 : f32
          nest.store %1, %y[48 * %i + 16 * %j + 8 * %k + %l] nontemporal 64 : memref<96xf32>
        }
      }
    }
  }
}

// What is left of a tile; guards, and what is read outside; floors.

// CHECK: nest.kernel (%x: memref<20xf32>, %y: memref<26xf32>) {
// CHECK-NEXT: nest.for %i < 4 {
// CHECK-NEXT: nest.for %j < 7 from [-7 * %i + 2] below [-7 * %i + 26, 5] {
// CHECK-NEXT: %0 = nest.load %x[7 * %i + %j - 3] if [7 * %i + %j - 3] < [20] else 1.0 : memref<20xf32>
// CHECK-NEXT: %1 = nest.inside if [(7 * %i + %j) floordiv 2, %j] < [9, 6] : f32
nest.kernel (%x: memref<20xf32>, %y: memref<26xf32>) {
  nest.for %i < 4 {
    nest.for %j < 7 from [2 - 7 * %i] below [26 - 7 * %i, 5] {
      %0 = nest.load %x[7 * %i + %j - 3] if [7 * %i + %j - 3] < [20] else 1.0 : memref<20xf32>
      %1 = nest.inside if [(7 * %i + %j) floordiv 2, %j] < [9, 6] : f32
      %2 = arith.mulf %0, %1 : f32
      nest.store %2, %y[7 * %i + %j] : memref<26xf32>
    }
  }
}

// Totals, branches, a transposed block, lines that are asked for.

// CHECK: %t = nest.alloc : memref<16xf32, "registers">
// CHECK-NEXT: %0 = nest.identity numeric_max : f32
// CHECK-NEXT: nest.for %l < 5 vector lanes 16 {
// CHECK-NEXT: nest.prefetch %x[%l + 64] if [%l - 1] < [3] : memref<80xf32>
// CHECK-NEXT: %1 = nest.load %x[%l] padded : memref<80xf32>
// CHECK-NEXT: nest.accumulate numeric_max %1, %t[%l] masked fused : memref<16xf32, "registers">
// CHECK-NEXT: }
// CHECK-NEXT: nest.transpose %t [2, 8] : memref<16xf32, "registers">
// CHECK-NEXT: nest.for %i < 3 {
// CHECK-NEXT: nest.if [%i - 1] < [1] {
// CHECK-NEXT: nest.store %0, %y[%i] : memref<3xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: }
// CHECK: nest.when %2 {
// CHECK-NEXT: } else {
// CHECK-NEXT: nest.store %0, %y[0] : memref<3xf32>
nest.kernel (%x: memref<80xf32>, %y: memref<3xf32>) {
  %t = nest.alloc : memref<16xf32, "registers">
  %0 = nest.identity numeric_max : f32
  nest.for %l < 5 vector lanes 16 {
    nest.prefetch %x[%l + 64] if [%l - 1] < [3] : memref<80xf32>
    %1 = nest.load %x[%l] padded : memref<80xf32>
    nest.accumulate numeric_max %1, %t[%l] masked fused : memref<16xf32, "registers">
  }
  nest.transpose %t [2, 8] : memref<16xf32, "registers">
  nest.for %i < 3 {
    nest.if [%i - 1] < [1] {
      nest.store %0, %y[%i] : memref<3xf32>
    } else {
    }
  }
  %2 = arith.constant true
  nest.when %2 {
  } else {
    nest.store %0, %y[0] : memref<3xf32>
  }
}
