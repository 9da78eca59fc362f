"""cuBLAS by its C interface: row-major products as equivalent column-major ones.

A row-major matrix is the transpose of the column-major one in the same memory: C = A B row-major is
C^T = B^T A^T column-major. So the operands swap places and nothing is copied. Products of float32
are exact to float32 unless TF32 is requested.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError
from .device_runtime import DTYPES, Work
from .program_data import Gemm

_NAMES = ("libcublas.so.13", "libcublas.so.12")
# cudaDataType and cublasComputeType of a product, by its elements.
_TYPES = {"float": (0, 68), "double": (1, 70), "__half": (2, 68), "__nv_bfloat16": (14, 68)}
_FAST_TF32 = 77
_DEFAULT_ALGORITHM = -1


class Cublas:
    """A handle on a stream.

    Units: `WORKSPACE` is bytes, NVIDIA's recommendation for Hopper. It is allocated beforehand, so
    that nothing is allocated while a graph is captured.
    """

    WORKSPACE = 32 << 20

    def __init__(self, stream: int, tf32: bool = False) -> None:
        """Load the library. Raises UserError where it is not installed."""
        self._library = load_cublas()
        self._tf32 = tf32
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
        self._call("cublasSetMathMode", self._handle, ctypes.c_int(0))

    def use_workspace(self, address: int) -> None:
        """Give it `WORKSPACE` bytes of the device."""
        size = ctypes.c_size_t(self.WORKSPACE)
        self._call("cublasSetWorkspace_v2", self._handle, ctypes.c_void_p(address), size)

    def bind(self, step: Gemm, addresses: Sequence[int]) -> Work:
        """A product on the buffers of a, b and c. Raises UserError for unsupported types."""
        arguments = self.arguments(step, addresses)
        function = self._library.cublasGemmStridedBatchedEx

        def work() -> None:
            status = function(*arguments)
            if status != 0:
                raise UserError(f"cuBLAS refuses a product: {self._reason(status)}")

        return work

    def arguments(self, step: Gemm, addresses: Sequence[int]) -> list[Any]:
        """The arguments of `cublasGemmStridedBatchedEx`.

        Raises:
            UserError: cuBLAS has no product of these element types.
        """
        if step.c.transposed:  # C^T = A B is C = B^T A^T
            a = replace(step.b, transposed=not step.b.transposed)
            b = replace(step.a, transposed=not step.a.transposed)
            c = replace(step.c, transposed=False)
            flipped = replace(step, a=a, b=b, c=c, m=step.n, n=step.m)
            return self.arguments(flipped, [addresses[1], addresses[0], addresses[2]])
        if step.ctype not in _TYPES:
            raise UserError(f"cuBLAS has no product of '{step.ctype}'")
        data, compute = _TYPES[step.ctype]
        compute = _FAST_TF32 if self._tf32 and step.ctype == "float" else compute
        scalar = ctypes.c_double if step.ctype == "double" else ctypes.c_float
        width = DTYPES[step.ctype].itemsize
        operands = [
            (
                ctypes.c_void_p(address + matrix.offset * width),
                ctypes.c_int(data),
                ctypes.c_int(matrix.row_stride),
                ctypes.c_longlong(matrix.batch_stride),
            )
            for matrix, address in zip((step.a, step.b, step.c), addresses, strict=True)
        ]
        a, b, c = operands
        return [
            self._handle,
            ctypes.c_int(step.b.transposed),
            ctypes.c_int(step.a.transposed),
            *(ctypes.c_int(n) for n in (step.n, step.m, step.k)),
            ctypes.byref(scalar(1.0)),
            *b,
            *a,
            ctypes.byref(scalar(0.0)),
            *c,
            *(ctypes.c_int(n) for n in (step.batch, compute, _DEFAULT_ALGORITHM)),
        ]

    def close(self) -> None:
        """Free the handle."""
        self._call("cublasDestroy_v2", self._handle)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise UserError(f"cuBLAS refuses: {name}: {self._reason(status)}")

    def _reason(self, status: int) -> str:
        text = self._library.cublasGetStatusString
        text.restype = ctypes.c_char_p
        return text(ctypes.c_int(status)).decode()


def load_cublas() -> Any:
    """The library loaded in the process or installed in the system, or the pip package's.

    Raises:
        UserError: there is none.
    """
    wheels = importlib.util.find_spec("nvidia")
    folders = (wheels.submodule_search_locations if wheels is not None else None) or ()
    found = [str(Path(folder) / "cu13" / "lib" / _NAMES[0]) for folder in folders]
    for name in (_NAMES[0], *found, _NAMES[1]):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise UserError("matrix products need cuBLAS", hint="pip install 'nvidia-cublas==13.*'")
