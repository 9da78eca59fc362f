"""Data classes of a printed program: kernels as text, buffers, and the steps that run them.

All of it is plain data: compiling, emulating or running a program needs no IR. A launch
passes the pointers of its buffers and nothing else; every shape is static and in the text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["input", "output", "weight", "temporary"]
Dim3: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class CudaParameter:
    """One pointer parameter of a kernel: `elements` of `ctype`, the whole buffer."""

    name: str
    ctype: str
    """`float`, `double`, `__half`, `__nv_bfloat16`, `bool` or a `<type_traits>`-free integer:
    `signed char`, `short`, `int`, `long long`, `unsigned char`."""
    elements: int
    written: bool


@dataclass(frozen=True)
class CudaKernel:
    """One `extern "C" __global__ void name(...)`; parameters: inputs, then outputs.

    Attributes:
        source: the kernel alone, with the includes it needs; compiles by itself.
        shared_bytes: static shared memory (dynamic shared memory is not used).
        preamble, definition: the source in pieces: includes and helper functions, which several
            kernels of one file share, and the kernel itself.
    """

    name: str
    source: str
    grid: Dim3  # blocks
    block: Dim3  # threads
    shared_bytes: int
    parameters: tuple[CudaParameter, ...]
    preamble: tuple[str, ...] = ()
    definition: str = ""

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True)
class Buffer:
    """A buffer on the device.

    `temporary` and `output` buffers lie in the arena and `weight` buffers in the weights file, at
    byte `offset`; an `input` has an allocation of its own (offset 0), row-major.
    """

    name: str
    ctype: str  # C type of an element
    elements: int  # how many
    offset: int
    kind: Kind


@dataclass(frozen=True)
class Launch:
    """Run a kernel on buffers, given by their numbers in the order of its parameters."""

    kernel: int
    buffers: tuple[int, ...]


@dataclass(frozen=True)
class GemmOperand:
    """A row-major operand of a library gemm: a buffer, its first element, and strides in elements.

    `rows` x `columns` as stored; `transposed` means that the product reads it with both swapped.
    `batch_stride` 0 means that all products of the batch read the same matrix.
    """

    buffer: int
    offset: int
    rows: int
    columns: int
    row_stride: int
    batch_stride: int
    transposed: bool


@dataclass(frozen=True)
class Gemm:
    """c = a b for each product of the batch, by cuBLAS; a is m x k and b is k x n as read."""

    a: GemmOperand
    b: GemmOperand
    c: GemmOperand
    m: int
    n: int
    k: int
    batch: int
    ctype: str


@dataclass(frozen=True)
class ConvTensor:
    """An operand of a library convolution: sizes and element strides as (n, c, *spatial).

    A filter has (f, c per group, *taps); a transposed convolution's has (c, f per group, *taps).
    """

    buffer: int
    offset: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Fused:
    """Ops that cuDNN fuses with a convolution: max(conv + bias [+ residual], 0).

    The bias has sizes (1, f, 1, ...).
    """

    bias: ConvTensor
    residual: ConvTensor | None = None


@dataclass(frozen=True)
class ConvCall:
    """out = conv(data, filter), by cuDNN; transposed: the gradient of a convolution by its data."""

    data: ConvTensor
    filter: ConvTensor
    out: ConvTensor
    pads: tuple[int, ...]
    """Pads before the first element, per spatial dim; those at the end follow from `out`."""
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int
    transposed: bool
    ctype: str
    fused: Fused | None = None

    @property
    def operands(self) -> tuple[ConvTensor, ...]:
        """All tensors in the order in which runtimes take their addresses."""
        whole = (self.data, self.filter, self.out)
        if self.fused is None:
            return whole
        residual = self.fused.residual
        return (*whole, self.fused.bias, *(() if residual is None else (residual,)))


Step: TypeAlias = Launch | Gemm | ConvCall


@dataclass(frozen=True)
class Port:
    """An input or output of the program: its name, shape, and the buffer that holds it.

    dtype is numpy's or ml_dtypes' name. Element 0 is at element `offset` of the buffer. `strides`
    are in elements; None means row-major, which all inputs are.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    buffer: int
    offset: int = 0
    strides: tuple[int, ...] | None = None

    @property
    def span(self) -> int:
        """Elements from the first to the last, both included."""
        if 0 in self.shape:
            return 0
        if self.strides is None:
            return math.prod(self.shape)
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True)
class CudaProgram:
    """A whole program: run `steps` in order on one stream.

    Attributes:
        arena_bytes: size of the arena that holds temporaries and outputs.
        weights: contents of the weights file: every `weight` buffer at its offset.
    """

    kernels: tuple[CudaKernel, ...]
    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    arena_bytes: int
    weight_bytes: int
    weights: bytes
