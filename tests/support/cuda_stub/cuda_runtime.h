// As much of CUDA's runtime as a printed program uses, on the host: the device is the heap, and a
// launch runs all threads one after another (kernels with barriers cannot run so).
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
static inline void __syncthreads() { abort(); }
template <class T> T __shfl_xor_sync(unsigned, T, int) { abort(); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float __int_as_float(int i) { float x; memcpy(&x, &i, 4); return x; }

struct float4 { float x, y, z, w; };
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static dim3 threadIdx, blockIdx;

typedef int cudaError_t;
typedef struct Stream *cudaStream_t;
enum { cudaSuccess, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
static inline const char *cudaGetErrorString(cudaError_t) { return "error"; }
static inline cudaError_t cudaMalloc(void **place, size_t n) { *place = malloc(n); return 0; }
static inline cudaError_t cudaFree(void *place) { free(place); return 0; }
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t n, int) {
    memcpy(to, from, n);
    return 0;
}
static inline cudaError_t cudaStreamCreate(cudaStream_t *stream) { *stream = nullptr; return 0; }
static inline cudaError_t cudaStreamDestroy(cudaStream_t) { return 0; }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return 0; }
static inline cudaError_t cudaGetLastError() { return 0; }

// What `kernel<<<grid, block, 0, stream>>>(arguments)` becomes in the test.
template <class... P, class... A>
void stub_launch(void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) kernel(arguments...);
}
