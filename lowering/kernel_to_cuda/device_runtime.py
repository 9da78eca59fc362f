"""The interface of a device that runs programs: memory, kernels, library calls, graphs, events.

Two classes implement it: the GPU through PyCUDA (pycuda_runtime.py), and its emulation on the CPU
(isoform.testing.cuda_emulator). Work is bound to addresses once and then called without arguments:
a graph of the whole program captures these calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeAlias

import ml_dtypes
import numpy as np

from ...dialects.types import Array
from .program_data import ConvCall, CudaKernel, Gemm

Work: TypeAlias = Callable[[], None]
Launcher: TypeAlias = Callable[[Sequence[int]], Work]
"""Binds a kernel to the addresses of its buffers."""

ALIGNMENT = 256
"""Every allocation starts at a multiple of this."""

DTYPES: dict[str, np.dtype[Any]] = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "__half": np.dtype(np.float16),
    "__nv_bfloat16": np.dtype(ml_dtypes.bfloat16),
    "bool": np.dtype(np.bool_),
    "signed char": np.dtype(np.int8),
    "unsigned char": np.dtype(np.uint8),
    "short": np.dtype(np.int16),
    "unsigned short": np.dtype(np.uint16),
    "int": np.dtype(np.int32),
    "unsigned int": np.dtype(np.uint32),
    "long long": np.dtype(np.int64),
    "unsigned long long": np.dtype(np.uint64),
}
"""numpy's type of an element, by its type in CUDA C."""


class DeviceError(Exception):
    """A device's driver reports an error.

    Cause: an illegal action of a kernel, or a device failure: not a user's mistake. Nothing more
    can be done on the device in this process.

    Example: `cuGraphLaunch: an illegal memory access was encountered`
    """


class Event(Protocol):
    """A point in the order of work."""

    def since(self, earlier: Self) -> float:
        """Seconds between two events; waits until both have happened."""
        ...


class DeviceRuntime(Protocol):
    """A device. Work is done in the order of the calls.

    Attributes:
        description: the device in a few words.
    """

    description: str

    def alloc(self, size: int) -> int:
        """The address of this many bytes, contents undefined; they live until `free` or `close`."""
        ...

    def free(self, address: int) -> None:
        """Free memory from `alloc`."""
        ...

    def upload(self, address: int, array: Array) -> None:
        """Copy a contiguous array to the device."""
        ...

    def download(self, address: int, array: Array) -> None:
        """Fill a contiguous array from the device, after all earlier work is done."""
        ...

    def load(self, kernels: Sequence[CudaKernel]) -> list[Launcher]:
        """Make kernels ready to launch."""
        ...

    def gemm(self, step: Gemm, addresses: Sequence[int]) -> Work:
        """Bind a matrix product to the addresses of the buffers of a, b and c."""
        ...

    def conv(self, step: ConvCall, addresses: Sequence[int]) -> Work:
        """Bind a convolution to the addresses of the buffers of its `operands`."""
        ...

    def capture(self, works: Sequence[Work]) -> Work:
        """One graph that does them all, in order. Nothing may be allocated meanwhile."""
        ...

    def event(self) -> Event:
        """An event after all work issued so far."""
        ...

    def close(self) -> None:
        """Free all memory and the device."""
        ...
