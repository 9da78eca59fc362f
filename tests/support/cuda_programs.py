"""A CUDA program written by hand (a batch of products, a kernel, a product), and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from isoform.lowering.kernel_to_cuda.program_data import (
    Buffer,
    ConvCall,
    ConvTensor,
    CudaProgram,
    Gemm,
    GemmOperand,
    Launch,
    Port,
)
from support.cuda_kernels import kernel

BIAS_RELU = """\
extern "C" __global__ void bias_relu(
    const float* __restrict__ x, const float* __restrict__ b, float* __restrict__ y) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < 1000) y[i] = fmaxf(x[i] + b[i % 50], 0.0f);
}
"""


def two_layers() -> tuple[CudaProgram, np.ndarray, np.ndarray, np.ndarray]:
    """y = relu(x w1 + b) v per half of x's rows; also w1, b and v."""
    rng = np.random.default_rng(7)
    w, b = rng.standard_normal((30, 50), np.float32), rng.standard_normal(50, np.float32)
    v = rng.standard_normal((8, 50), np.float32)  # read transposed
    parameters = [("x", "float", 1000, False), ("b", "float", 50, False)]
    bias = kernel(BIAS_RELU, (8,), (128,), [*parameters, ("y", "float", 1000, True)])
    weights = w.tobytes() + bytes(80) + b.tobytes() + bytes(56) + v.tobytes()
    buffers = (
        Buffer("x", "float", 600, 0, "input"),
        Buffer("w", "float", 1500, 0, "weight"),
        Buffer("b", "float", 50, 6080, "weight"),
        Buffer("v", "float", 400, 6336, "weight"),
        Buffer("h", "float", 1000, 0, "temporary"),
        Buffer("r", "float", 1000, 4096, "temporary"),
        Buffer("y", "float", 160, 8192, "output"),
    )
    first = Gemm(
        a=GemmOperand(0, 0, 10, 30, 30, 300, False),
        b=GemmOperand(1, 0, 30, 50, 50, 0, False),
        c=GemmOperand(4, 0, 10, 50, 50, 500, False),
        m=10, n=50, k=30, batch=2, ctype="float",
    )  # fmt: skip
    second = Gemm(
        a=GemmOperand(5, 0, 20, 50, 50, 0, False),
        b=GemmOperand(3, 0, 8, 50, 50, 0, True),
        c=GemmOperand(6, 0, 20, 8, 8, 0, False),
        m=20, n=8, k=50, batch=1, ctype="float",
    )  # fmt: skip
    program = CudaProgram(
        kernels=(bias,),
        steps=(first, Launch(0, (4, 2, 5)), second),
        buffers=buffers,
        inputs=(Port("x", "float32", (20, 30), 0),),
        outputs=(Port("y", "float32", (20, 8), 6),),
        arena_bytes=8192 + 640,
        weight_bytes=len(weights),
        weights=weights,
    )
    return program, w, b, v


def random_gemm(rng: np.random.Generator) -> tuple[Gemm, list[int]]:
    """A product with any operand transposed, rows apart, in a batch; sizes of the three buffers."""
    m, n, k, batch = (int(x) for x in rng.integers(1, 9, 4))
    matrices, sizes = [], []
    for number, (rows, columns) in enumerate(((m, k), (k, n), (m, n))):
        transposed = bool(rng.integers(2))
        stored = (columns, rows) if transposed else (rows, columns)
        stride, offset = stored[1] + int(rng.integers(3)), int(rng.integers(5))
        apart = stored[0] * stride + int(rng.integers(3))
        apart = 0 if number < 2 and rng.integers(3) == 0 else apart
        matrices.append(GemmOperand(number, offset, *stored, stride, apart, transposed))
        sizes.append(offset + (batch - 1) * apart + stored[0] * stride)
    return Gemm(*matrices, m, n, k, batch, "float"), sizes


def random_conv(rng: np.random.Generator, transposed: bool) -> ConvCall:
    """A small convolution with one to three spatial dims, groups, dilation, uneven pads."""
    rank, groups = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    taps, strides, dilations, pads = (
        tuple(int(n) for n in rng.integers(low, high, rank))
        for low, high in ((1, 4), (1, 4), (1, 3), (0, 3))
    )
    size = [int(n) for n in rng.integers(6, 10, rank)]
    batch, per_in, per_out = (int(n) for n in rng.integers(1, 4, 3))
    spread = [(t - 1) * d + 1 for t, d in zip(taps, dilations, strict=True)]
    after = [int(n) for n in rng.integers(0, 3, rank)]
    around = list(zip(size, strides, pads, after, spread, strict=True))
    if transposed:
        result = [(n - 1) * s + e - p - q for n, s, p, q, e in around]
        filters = (groups * per_in, per_out, *taps)
    else:
        result = [(n + p + q - e) // s + 1 for n, s, p, q, e in around]
        filters = (groups * per_out, per_in, *taps)
    if min(result) < 1:
        return random_conv(rng, transposed)
    dims = (batch, groups * per_in, *size), filters, (batch, groups * per_out, *result)
    tensors = [ConvTensor(k, 0, d, _dense(d)) for k, d in enumerate(dims)]
    return ConvCall(*tensors, pads, strides, dilations, groups, transposed, "float")


def _dense(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.prod(dims[k + 1 :], dtype=int)) for k in range(len(dims)))


def convolved(step: ConvCall, data: Any, filter_: Any) -> Any:
    """The definition, one product after another."""
    out = np.zeros(step.out.dims)
    small = step.data.dims if step.transposed else step.out.dims
    per_in, per_out = step.data.dims[1] // step.groups, step.out.dims[1] // step.groups
    for position in np.ndindex(*small[2:]):
        for tap in np.ndindex(*step.filter.dims[2:]):
            other = tuple(
                p * s - q + t * d
                for p, s, q, t, d in zip(
                    position, step.strides, step.pads, tap, step.dilations, strict=True
                )
            )
            source, target = (position, other) if step.transposed else (other, position)
            if any(not 0 <= i < n for i, n in zip(source, step.data.dims[2:], strict=True)):
                continue
            if any(not 0 <= i < n for i, n in zip(target, step.out.dims[2:], strict=True)):
                continue
            for f in range(step.out.dims[1]):
                for c in range(per_in):
                    channel = f // per_out * per_in + c
                    index = (channel, f % per_out) if step.transposed else (f, c)
                    weight = filter_[(*index, *tap)]
                    out[(slice(None), f, *target)] += data[(slice(None), channel, *source)] * weight
    return out
