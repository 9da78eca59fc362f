// RUN: isoform-opt %s -t cuda | filecheck %s

// Golden texts: loops with a thread for each result, bounds checked where a read may leave its
// tensor; a reduction by a block; a product in tiles, as its schedule says.
func.func @main(%x: tensor<6x35xf32>, %b: tensor<35x24xf32>) -> (tensor<6x35xf32>, tensor<6xf32>, tensor<6x24xf32>) {
  %shift = kernel.loops (%0 = %x) {
    %1 = algebra.scope (i: 6, j: 35) max(%0[i, j - 2], 0.0) : tensor<6x35xf32>
    kernel.yield %1 : tensor<6x35xf32>
  } : tensor<6x35xf32>
  %norm = kernel.loops (%0 = %x) schedule {"rows" = "block"} {
    %1 = algebra.scope (i: 6) sum (k: 35) %0[i, k] * %0[i, k] : tensor<6xf32>
    %2 = algebra.scope (i: 6) sqrt(%1[i]) : tensor<6xf32>
    kernel.yield %2 : tensor<6xf32>
  } : tensor<6xf32>
  %product = kernel.gemm (%0 = %x, %1 = %b) schedule {tile_rows = array<i64: 1, 4, 1, 1>, tile_columns = array<i64: 2, 8, 1, 4>, tile_depth = array<i64: 8, 1>} {
    %2 = algebra.scope (m: 6, n: 24) sum (k: 35) %0[m, k] * %1[k, n] : tensor<6x24xf32>
    kernel.yield %2 : tensor<6x24xf32>
  } : tensor<6x24xf32>
  func.return %shift, %norm, %product : tensor<6x35xf32>, tensor<6xf32>, tensor<6x24xf32>
}

// CHECK: // --- kernels
// CHECK: // shift
// CHECK-NEXT: // y = (i: 6, j: 35) max(x[i, j - 2], 0.0) : tensor<6x35xf32>
// CHECK-NEXT: extern "C" __global__ void __launch_bounds__(256, 1)
// CHECK-NEXT: shift_kernel(const float *__restrict__ x, float *__restrict__ y) {
// CHECK-NEXT: const int point = blockIdx.x * 256 + threadIdx.x;
// CHECK-NEXT: if (point >= 210) return;
// CHECK-NEXT: const int j = point % 35;
// CHECK-NEXT: const int i = point / 35;
// CHECK-NEXT: const float at = j >= 2 ? x[35 * i + j - 2] : 0.0f;
// CHECK-NEXT: y[35 * i + j] = maximum(at, 0.0f);
// CHECK-NEXT: }
// CHECK: // norm
// CHECK-NEXT: // value = (i: 6) sum (k: 35) x[i, k] * x[i, k] : tensor<6xf32>
// CHECK-NEXT: // y = (i: 6) sqrt(value[i]) : tensor<6xf32>
// CHECK-NEXT: extern "C" __global__ void __launch_bounds__(64, 1)
// CHECK-NEXT: norm_kernel(const float *__restrict__ x, float *__restrict__ y) {
// CHECK-NEXT: const int i = blockIdx.x;
// CHECK-NEXT: __shared__ __align__(16) float scratch[2];
// CHECK-NEXT: float sum = 0.0f;
// CHECK-NEXT: for (int k = threadIdx.x; k < 35; k += 64) {
// CHECK-NEXT: const float t = x[35 * i + k];
// CHECK-NEXT: sum += t * t;
// CHECK-NEXT: }
// CHECK-NEXT: sum = block_sum<64>(sum, scratch);
// CHECK-NEXT: if (threadIdx.x == 0) {
// CHECK-NEXT: y[i] = sqrtf(sum);
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK: // product
// CHECK-NEXT: // y = (m: 6, n: 24) sum (k: 35) a[m, k] * b[k, n] : tensor<6x24xf32>
// CHECK-NEXT: // rows m: 1 x 4 x 1 x 1 (virtual threads x threads x inner x innermost)
// CHECK-NEXT: // columns n: 2 x 8 x 1 x 4
// CHECK-NEXT: // depth k: 8 x 1 a step
// CHECK-NEXT: extern "C" __global__ void __launch_bounds__(32, 1)
// CHECK-NEXT: product_kernel(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ y) {
// CHECK-NEXT: __shared__ __align__(16) float a_tile[2][8][8];
// CHECK-NEXT: __shared__ __align__(16) float b_tile[2][8][68];
// CHECK-NEXT: const int thread = threadIdx.x;
// CHECK-NEXT: const int thread_row = thread / 8;
// CHECK-NEXT: const int thread_column = thread % 8;
// CHECK-NEXT: const int first_row = blockIdx.x * 4;
// CHECK-NEXT: const int first_column = 0;
// CHECK-NEXT: float a_tile_next[1];
// CHECK-NEXT: float4 b_tile_next[4];
// CHECK-NEXT: // Fetch this thread's share of the tiles that begin at a depth ...
// CHECK-NEXT: const auto fetch = [&](int start) {
// CHECK-NEXT: {
// CHECK-NEXT: const int load = thread;
// CHECK-NEXT: const int m = first_row + load / 8;
// CHECK-NEXT: const int k = start + load % 8;
// CHECK-NEXT: a_tile_next[0] = m < 6 && k < 35 ? a[35 * m + k] : 0.0f;
// CHECK-NEXT: }
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int i = 0; i < 4; ++i) {
// CHECK-NEXT: const int load = thread + i * 32;
// CHECK-NEXT: const int n = first_column + load % 16 * 4;
// CHECK-NEXT: const int k = start + load / 16;
// CHECK-NEXT: b_tile_next[i] = n < 24 && k < 35 ? load4(&b[24 * k + n]) :
// CHECK-NEXT: make_float4(0.0f, 0.0f, 0.0f, 0.0f);
// CHECK-NEXT: }
// CHECK-NEXT: };
// CHECK-NEXT: // ... and keep it in a stage of shared memory.
// CHECK-NEXT: const auto keep = [&](int stage) {
// CHECK-NEXT: {
// CHECK-NEXT: const int load = thread;
// CHECK-NEXT: a_tile[stage][load % 8][load / 8] = a_tile_next[0];
// CHECK-NEXT: }
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int i = 0; i < 4; ++i) {
// CHECK-NEXT: const int load = thread + i * 32;
// CHECK-NEXT: store4(&b_tile[stage][load / 16][load % 16 * 4], b_tile_next[i]);
// CHECK-NEXT: }
// CHECK-NEXT: };
// CHECK-NEXT: float sum[1][8] = {};
// CHECK-NEXT: fetch(0);
// CHECK-NEXT: keep(0);
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: for (int start = 0, stage = 0; start < 40; start += 8, stage ^= 1) {
// CHECK-NEXT: if (start + 8 < 40) fetch(start + 8);
// CHECK-NEXT: #pragma unroll 16
// CHECK-NEXT: for (int k_1 = 0; k_1 < 8; ++k_1) {
// CHECK-NEXT: __align__(16) float a_tile_part[1];
// CHECK-NEXT: a_tile_part[0] = a_tile[stage][k_1][thread_row];
// CHECK-NEXT: __align__(16) float b_tile_part[8];
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int v = 0; v < 2; ++v) {
// CHECK-NEXT: store4(&b_tile_part[v * 4], load4(&b_tile[stage][k_1][v * 32 + thread_column * 4]));
// CHECK-NEXT: }
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int j = 0; j < 8; ++j) {
// CHECK-NEXT: sum[0][j] += a_tile_part[0] * b_tile_part[j];
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: if (start + 8 < 40) keep(stage ^ 1);
// CHECK-NEXT: __syncthreads();
// CHECK-NEXT: }
// CHECK-NEXT: const int m = first_row + thread_row;
// CHECK-NEXT: if (m >= 6) return;
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int j = 0; j < 8; ++j) {
// CHECK-NEXT: const int n = first_column + j / 4 * 32 + thread_column * 4 + j % 4;
// CHECK-NEXT: if (n >= 24) continue;
// CHECK-NEXT: y[24 * m + n] = sum[0][j];
// CHECK-NEXT: }
// CHECK-NEXT: }

// CHECK: static void run(cudaStream_t stream, char *arena, const char *weights,
// CHECK-NEXT: const float *x,
// CHECK-NEXT: const float *b) {
// CHECK: shift_kernel<<<1, 256, 0, stream>>>(x, shift);
// CHECK-NEXT: norm_kernel<<<6, 64, 0, stream>>>(x, norm);
// CHECK-NEXT: product_kernel<<<2, 32, 0, stream>>>(x, b, product);
// CHECK: save(argv[4], arena, 840);  // shift
