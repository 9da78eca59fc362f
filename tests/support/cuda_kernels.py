"""CUDA kernels written by hand: what the emulation, the compiler and the runtimes are tested on."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from isoform.lowering.kernel_to_cuda.program_data import CudaKernel, CudaParameter
from isoform.testing.cuda_emulator.kernels import EmulatedKernel, Order, compiler, emulate

NUMPY = {"float": np.dtype(np.float32), "__half": np.dtype(np.float16), "int": np.dtype(np.int32)}


def need_compiler() -> None:
    """Skip where there is no C++ compiler; fail in CI, where there must be one."""
    if compiler() is None:
        reason = "no C++ compiler (g++): the CUDA text is not run on the CPU"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def kernel(
    source: str,
    grid: Sequence[int],
    block: Sequence[int],
    parameters: Sequence[tuple[str, str, int, bool]],
    shared: int = 0,
) -> CudaKernel:
    """A kernel, named as in its text."""
    name = re.findall(r"__global__[^(]*(?:\(\d+\) )?\b(\w+)\(\s*const", source)[0]
    x, y, z = (*grid, 1, 1)[:3]
    u, v, w = (*block, 1, 1)[:3]
    return CudaKernel(
        name, source, (x, y, z), (u, v, w), shared, tuple(CudaParameter(*p) for p in parameters)
    )


def run(
    emulated: EmulatedKernel, inputs: Sequence[Any], order: Order = "forward", workers: int = 1
) -> list[Any]:
    """Launch on copies of the inputs; what is written starts as NaN or -1."""
    buffers = [np.ascontiguousarray(array).copy() for array in inputs]
    for parameter in emulated.kernel.parameters[len(inputs) :]:
        size = parameter.elements * NUMPY[parameter.ctype].itemsize
        buffers.append(np.full(size, 255, np.uint8).view(NUMPY[parameter.ctype]))
    emulated.launch([buffer.ctypes.data for buffer in buffers], order, workers=workers)
    return buffers[len(inputs) :]


def build(made: CudaKernel) -> EmulatedKernel:
    """Compile one kernel."""
    return emulate([made])[0]


M, N, K = 37, 50, 41
MATMUL = """\
extern "C" __global__ void __launch_bounds__(256) matmul(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  __shared__ __align__(16) float ta[16][17];
  __shared__ float tb[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 41; k += 16) {
    const int ka = k + threadIdx.x, kb = k + threadIdx.y;
    ta[threadIdx.y][threadIdx.x] = row < 37 && ka < 41 ? a[row * 41 + ka] : 0.0f;
    tb[threadIdx.y][threadIdx.x] = kb < 41 && column < 50 ? b[kb * 50 + column] : 0.0f;
    __syncthreads();  // both tiles are there
    for (int i = 0; i < 16; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();  // all have read them
  }
  if (row < 37 && column < 50) c[row * 50 + column] = sum;
}
"""


def matmul(source: str = MATMUL) -> CudaKernel:
    """c[37, 50] = a[37, 41] b[41, 50], with tiles of 16 in shared memory."""
    parameters = [("a", "float", M * K, False), ("b", "float", K * N, False)]
    return kernel(source, (4, 3), (16, 16), [*parameters, ("c", "float", M * N, True)], 2176)


REDUCE = """\
extern "C" __global__ void row_sum(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float parts[128];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < 1000; i += 128) sum += x[blockIdx.x * 1000 + i];
  parts[threadIdx.x] = sum;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = parts[0];
}
"""


def row_sum(source: str = REDUCE) -> CudaKernel:
    """y[5] = sums of the rows of x[5, 1000]; a tree in shared memory."""
    return kernel(source, (5,), (128,), [("x", "float", 5000, False), ("y", "float", 5, True)], 512)


WARPS = """\
extern "C" __global__ void row_max(const float* __restrict__ x, float* __restrict__ y) {
  float top = -__int_as_float(0x7f800000);
  for (int i = threadIdx.x % 32; i < 70; i += 32)
    top = fmaxf(top, x[(blockIdx.x * 4 + threadIdx.x / 32) * 70 + i]);
  for (int step = 16; step > 0; step /= 2)
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
  if (threadIdx.x % 32 == 0) y[blockIdx.x * 4 + threadIdx.x / 32] = top;
}
"""


def row_max(source: str = WARPS) -> CudaKernel:
    """y[12] = maxima of the rows of x[12, 70]; a warp for each row."""
    return kernel(source, (3,), (128,), [("x", "float", 840, False), ("y", "float", 12, True)])


ADD = """\
__device__ __forceinline__ void store4(float *position, float4 value) {
  *reinterpret_cast<float4 *>(position) = value;
}

extern "C" __global__ void add_relu(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z) {
  const int i = (blockIdx.x * 64 + threadIdx.x) * 4;
  if (i + 3 < 1003) {
    const float4 a = *reinterpret_cast<const float4*>(x + i);
    const float4 b = *reinterpret_cast<const float4*>(&y[i]);
    const float4 sum = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    store4(z + i, make_float4(fmaxf(sum.x, 0.0f), fmaxf(sum.y, 0.0f), fmaxf(sum.z, 0.0f),
                              fmaxf(sum.w, 0.0f)));
  } else {
    for (int j = i; j < 1003; ++j) z[j] = fmaxf(x[j] + y[j], 0.0f);
  }
}
"""


def add_relu(source: str = ADD) -> CudaKernel:
    """z[1003] = max(x + y, 0), four at a time with a tail."""
    parameters = [("x", "float", 1003, False), ("y", "float", 1003, False)]
    return kernel(source, (4,), (64,), [*parameters, ("z", "float", 1003, True)])


SCALE = """\
#include <cuda_fp16.h>

extern "C" __global__ void halve(const __half* __restrict__ x, __half* __restrict__ y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < 65536) y[i] = __float2half(__half2float(x[i]) * 0.5f);
}
"""


def halve() -> CudaKernel:
    """y = x / 2 for 65536 16-bit floats."""
    parameters = [("x", "__half", 65536, False), ("y", "__half", 65536, True)]
    return kernel(SCALE, (1024,), (64,), parameters)


def golden() -> list[CudaKernel]:
    """All of them."""
    return [matmul(), row_sum(), row_max(), add_relu(), halve()]
