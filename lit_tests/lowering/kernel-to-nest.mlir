// RUN: isoform-opt %s -p 'kernel-to-nest{isa="plain"}' | filecheck %s
// RUN: isoform-opt %s -p 'kernel-to-nest{isa="plain"}' -t nest-cuda | filecheck %s --check-prefix=CUDA
// RUN: isoform-opt %s -p 'kernel-to-nest{isa="plain"}' -t nest-llvm | filecheck %s --check-prefix=LLVM

func.func @main(%x: tensor<18xf32>, %p: tensor<4x6xf32>, %i: tensor<3x4x24xi1>, %q: tensor<2x3x3xf32>) -> (tensor<18xf32>, tensor<4x14xf32>, tensor<3xi1>, tensor<2x3x3xf32>) {
  %e = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i: 18) max(%0[i], 0.0) : tensor<18xf32>
    kernel.yield %1 : tensor<18xf32>
  } : tensor<18xf32>
  %padded = kernel.loops (%0 = %p) {
    %1 = algebra.scope (i: 4, j: 14) %0[i, j - 4] : tensor<4x14xf32>
    kernel.yield %1 : tensor<4x14xf32>
  } : tensor<4x14xf32>
  %any = kernel.loops (%0 = %i) {
    %1 = algebra.scope (i: 3) max (k: 4, l: 20) %0[i, k, l] : tensor<3xi1>
    kernel.yield %1 : tensor<3xi1>
  } : tensor<3xi1>
  %batch = kernel.gemm (%0 = %q) {
    %1 = algebra.scope (b: 2, m: 3, n: 3) sum (k: 3) %0[b, m, k] * %0[b, k, n] : tensor<2x3x3xf32>
    kernel.yield %1 : tensor<2x3x3xf32>
  } : tensor<2x3x3xf32>
  func.return %e, %padded, %any, %batch : tensor<18xf32>, tensor<4x14xf32>, tensor<3xi1>, tensor<2x3x3xf32>
}

// Points: whole vectors, then one that leaves lanes out.

// CHECK: nest.kernel @e (%x0: memref<18xf32>, %y: memref<18xf32>) {
// CHECK-NEXT: nest.for %i0 < 4 {
// CHECK-NEXT: nest.for %i0_1 < 4 vector {
// CHECK-NEXT: %0 = nest.load %x0[4 * %i0 + %i0_1] room 18 : memref<18xf32>
// CHECK-NEXT: %1 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %2 = arith.maximumf %0, %1 : f32
// CHECK-NEXT: nest.store %2, %y[4 * %i0 + %i0_1] : memref<18xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: nest.for %i0_2 < 2 vector lanes 4 {
// CHECK-NEXT: %3 = nest.load %x0[%i0_2 + 16] room 18 : memref<18xf32>

// Guards: outside nothing is read, inside nothing is checked.

// CHECK: nest.kernel @padded (%x0: memref<24xf32>, %y: memref<56xf32>) {
// CHECK-NEXT: nest.for %i0 < 4 parallel {
// CHECK-NEXT: nest.for %i1 < 4 vector {
// CHECK-NEXT: %0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: nest.store %0, %y[14 * %i0 + %i1] : memref<56xf32>
// CHECK-NEXT: }
// CHECK-NEXT: nest.for %i1_1 < 4 vector {
// CHECK-NEXT: %1 = nest.load %x0[6 * %i0 + %i1_1] room 24 : memref<24xf32>

// A reduction over two loops: lanes along memory, taken together after both.

// CHECK: nest.kernel @any (%x0: memref<288xi1>, %y: memref<3xi1>) {
// CHECK: nest.for %i1 < 4 {
// CHECK-NEXT: nest.for %i2 < 1 unroll 1 {
// CHECK-NEXT: nest.for %i2_1 < 16 vector {
// CHECK-NEXT: %5 = nest.load %x0[96 * %i0 + 24 * %i1 + 16 * %i2 + %i2_1] room 288 : memref<288xi1>
// CHECK-NEXT: nest.accumulate max %5, %2[%i2_1] : memref<16xi1, "registers">
// CHECK: nest.accumulate max %6, %2[%i2_2] masked : memref<16xi1, "registers">
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: nest.for %7 < 16 vector {
// CHECK-NEXT: %8 = nest.load %2[%7] : memref<16xi1, "registers">
// CHECK-NEXT: nest.accumulate max %8, %0[0] : memref<1xi1, "registers">

// What no nest is built of has none.

// CHECK-NOT: nest.kernel @batch

// CUDA: e_kernel(const float *__restrict__ x0, float *__restrict__ y) {
// CUDA: #pragma unroll
// CUDA-NEXT: for (int i0_1 = 0; i0_1 < 4; ++i0_1) {
// CUDA-NEXT: const float t = x0[4 * i0 + i0_1];
// CUDA-NEXT: const float t_1 = maximum(t, 0.0f);
// CUDA-NEXT: y[4 * i0 + i0_1] = t_1;
// CUDA: padded_kernel(const float *__restrict__ x0, float *__restrict__ y) {
// CUDA-NEXT: const int i0 = blockIdx.x * 256 + threadIdx.x;
// CUDA-NEXT: if (i0 >= 4) return;

// LLVM: ; e: 1 items
// LLVM: load <4 x float>
// LLVM: ; padded: 4 items
