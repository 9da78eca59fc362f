"""A device made of host memory: kernels emulated, library calls by numpy.

Every allocation starts as NaN. Products and convolutions are computed in float32 at least. So
results show whether a program is right; times show nothing.
"""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialects.types import Array
from ...lowering.kernel_to_cuda.device_runtime import ALIGNMENT, DTYPES, Launcher, Work
from ...lowering.kernel_to_cuda.program_data import (
    ConvCall,
    ConvTensor,
    CudaKernel,
    Gemm,
    GemmOperand,
)
from .kernels import EmulatedKernel, Order, emulate


class EmulatedEvent:
    """A moment of the host's clock."""

    def __init__(self) -> None:
        self.at = time.perf_counter()

    def since(self, earlier: EmulatedEvent) -> float:
        """Seconds between two events."""
        return self.at - earlier.at


class EmulatedRuntime:
    """Implements `DeviceRuntime` on the CPU.

    Attributes:
        order: in which the threads and blocks of kernels run.
        workers: OS threads that share the blocks of a kernel.
    """

    def __init__(self, order: Order = "forward", workers: int = 1) -> None:
        self.description = f"emulation on the CPU, threads {order}"
        self.order: Order = order
        self.workers = workers
        self._memory: dict[int, Array] = {}

    def alloc(self, size: int) -> int:
        """Host memory full of 0xff."""
        memory = np.full(size + ALIGNMENT, 0xFF, np.uint8)
        address = memory.ctypes.data + -memory.ctypes.data % ALIGNMENT
        self._memory[address] = memory
        return address

    def free(self, address: int) -> None:
        """Free it."""
        del self._memory[address]

    def upload(self, address: int, array: Array) -> None:
        """Copy bytes."""
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, address: int, array: Array) -> None:
        """Copy bytes."""
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def load(self, kernels: Sequence[CudaKernel]) -> list[Launcher]:
        """Compile kernels for the CPU."""
        return [self._launcher(kernel) for kernel in emulate(kernels)]

    def _launcher(self, kernel: EmulatedKernel) -> Launcher:
        def bind(addresses: Sequence[int]) -> Work:
            bound = tuple(addresses)
            return lambda: kernel.launch(bound, self.order, workers=self.workers)

        return bind

    def gemm(self, step: Gemm, addresses: Sequence[int]) -> Work:
        """A product by numpy."""
        views = [
            _matrices(matrix, step, address)
            for matrix, address in zip((step.a, step.b, step.c), addresses, strict=True)
        ]

        def work() -> None:
            a, b, c = views
            c[...] = (_wide(a) @ _wide(b)).astype(c.dtype)

        return work

    def conv(self, step: ConvCall, addresses: Sequence[int]) -> Work:
        """A convolution by numpy, one tap after another."""
        data, filter_, out, *added = (
            _tensor(tensor, step.ctype, address)
            for tensor, address in zip(step.operands, addresses, strict=True)
        )

        def work() -> None:
            made = convolution(step, _wide(data), _wide(filter_))
            for term in added:
                made = made + _wide(term)
            if step.fused is not None:
                made = np.maximum(made, 0)
            out[...] = made.astype(out.dtype)

        return work

    def capture(self, works: Sequence[Work]) -> Work:
        """Call the recorded steps one after another."""
        captured = tuple(works)

        def graph() -> None:
            for work in captured:
                work()

        return graph

    def event(self) -> EmulatedEvent:
        """Now."""
        return EmulatedEvent()

    def close(self) -> None:
        """Free the memory."""
        self._memory.clear()


# --- library calls ------------------------------------------------------------------------------


def convolution(step: ConvCall, data: Array, filter_: Array) -> Array:
    """The result of a convolution step on dense (n, c, *spatial) data and its filter."""
    out = np.zeros(step.out.dims, data.dtype)
    groups, taps = step.groups, filter_.shape[2:]
    small, large = (data, out) if step.transposed else (out, data)
    filters = filter_.reshape(groups, -1, *filter_.shape[1:])
    if step.transposed:
        filters = filters.swapaxes(1, 2)  # (group, f per group, c per group, *taps)
    for tap in itertools.product(*(range(n) for n in taps)):
        here, there = _meeting(step, tap, small.shape[2:], large.shape[2:])
        source, target = (here, there) if step.transposed else (there, here)
        read = data[(..., *source)]
        parts = read.reshape(read.shape[0], groups, data.shape[1] // groups, -1)
        weights = filters[(slice(None), slice(None), slice(None), *tap)]
        position = out[(..., *target)]
        position += (weights @ parts).reshape(position.shape)
    return out


def _meeting(
    step: ConvCall, tap: Sequence[int], small: Sequence[int], large: Sequence[int]
) -> tuple[list[slice], list[slice]]:
    """Where a tap connects the strided tensor (a convolution's result) with the other one.

    Position i of `small` meets position i * stride - pad + tap * dilation of `large`, if it exists.
    """
    here: list[slice] = []
    there: list[slice] = []
    for k, (n, size) in enumerate(zip(small, large, strict=True)):
        stride, shift = step.strides[k], tap[k] * step.dilations[k] - step.pads[k]
        first = max(0, -(shift // stride))
        last = min(n, (size - 1 - shift) // stride + 1)
        last = max(first, last)
        start = first * stride + shift
        here.append(slice(first, last))
        there.append(slice(start, start + (last - first) * stride, stride))
    return here, there


def _wide(array: Array) -> Array:
    """16-bit floats as float32."""
    return array if array.dtype.kind in "iu" or array.dtype.itemsize > 2 else array.astype("f4")


def _matrices(matrix: GemmOperand, step: Gemm, address: int) -> Array:
    """The operand's matrices, as the product reads or writes them."""
    shape = (step.batch, matrix.rows, matrix.columns)
    strides = (matrix.batch_stride, matrix.row_stride, 1)
    stored = _strided(address, step.ctype, matrix.offset, shape, strides)
    return stored.swapaxes(1, 2) if matrix.transposed else stored


def _tensor(tensor: ConvTensor, ctype: str, address: int) -> Array:
    return _strided(address, ctype, tensor.offset, tensor.dims, tensor.strides)


def _strided(
    address: int, ctype: str, offset: int, shape: Sequence[int], strides: Sequence[int]
) -> Array:
    """Elements in host memory. Units: `offset` and `strides` are elements."""
    dtype: np.dtype[Any] = DTYPES[ctype]
    width = dtype.itemsize
    count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    start = address + offset * width
    memory = (ctypes.c_uint8 * (count * width)).from_address(start)
    flat = np.ctypeslib.as_array(memory).view(dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, [s * width for s in strides])
