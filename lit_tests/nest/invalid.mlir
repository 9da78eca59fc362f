// RUN: isoform-opt %s --split-input-file --verify-diagnostics

// The text.

nest.kernel (%x: memref<8xf32>) {
  nest.for %i < 8 {
    // expected-error@+1 {{a buffer is a memref}}
    %0 = nest.load %x[%i] : f32
  }
}

// -----

// Addresses.

nest.kernel (%x: memref<8xf32>, %k: index) {
  // expected-error@+1 {{addresses are over iterators of loops}}
  %0 = nest.load %x[%k] : memref<8xf32>
}

// -----

// Loops.

nest.kernel (%x: memref<8xf32>) {
  // expected-error@+1 {{the extent is at least 1}}
  nest.for %i < 0 {
  }
}

// -----

nest.kernel (%x: memref<8xf32>) {
  // expected-error@+1 {{'sideways' is none of serial, parallel, unrolled, vector}}
  "nest.for"() <{extent = 8 : i64, kind = "sideways", lanes = 0 : i64, lowers = 0 : i64, map = affine_map<() -> ()>}> ({
  ^bb0(%i: index):
  }) : () -> ()
}

// -----

// Reductions.

nest.kernel (%x: memref<8xf32>) {
  %t = nest.alloc : memref<1xf32, "registers">
  // expected-error@+1 {{'mean' is none of sum, prod, max, min, numeric_max, numeric_min, or}}
  %0 = nest.identity mean : f32
}
