"""Call the BLAS that numpy's wheel carries, from generated code.

The library's address travels in a kernel's argument array, never in its text: so a kernel may call
any library. The pool shares the columns of the result.
"""

import ctypes
import math
from functools import cache
from pathlib import Path

import numpy as np

from isoform.lowering.kernel_to_cpu.emit.emitter import Emitter
from isoform.lowering.kernel_to_cpu.emit.module import KernelCode, Module, kernel
from isoform.lowering.kernel_to_cpu.emit.types import F32, I32, I64, PTR, Index, Value, constant
from isoform.lowering.kernel_to_cpu.products.gemm_spec import GemmSpec

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112  # CBLAS_ORDER and CBLAS_TRANSPOSE
_SLICE_COLUMNS = 256
_MOST_SLICES = 16


@cache
def sgemm_address() -> int | None:
    """Find cblas_sgemm with 64-bit sizes; None where numpy's wheel carries another BLAS."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in sorted(folder.glob("libscipy_openblas64_*")):
        function = ctypes.CDLL(str(path)).scipy_cblas_sgemm64_
        return ctypes.cast(function, ctypes.c_void_p).value
    return None


def supports(spec: GemmSpec) -> bool:
    """Say whether BLAS can address the operands: one stride of each matrix must be 1."""
    return (
        _layout(spec.a_strides, spec.m, spec.k) is not None
        and _layout(spec.b_strides, spec.k, spec.n) is not None
        and spec.c_strides[-2] >= spec.n
        and min(spec.m, spec.n, spec.k) > 0
    )


def emit_blas_gemm(spec: GemmSpec) -> KernelCode:
    """Emit a kernel that calls BLAS; its arguments are A, B, `sgemm_address()`, C.

    Raises: ValueError if BLAS cannot address the operands.
    """
    if not supports(spec):
        raise ValueError(f"BLAS cannot address these strides: {spec}")
    slices = max(1, min(_MOST_SLICES, spec.n // _SLICE_COLUMNS))
    columns = -(-spec.n // slices)
    slices = -(-spec.n // columns)
    items = math.prod(spec.batch) * slices

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        with b.loop(low, high) as item:
            entry, number = b.split(item, slices)
            start = b.mul(number, columns)
            width = b.minimum(b.sub(spec.n, start), columns)
            _call(b, spec, pointers, entry, start, width)

    return kernel(Module(), 4, items, body)


def _call(
    b: Emitter, spec: GemmSpec, pointers: list[Value], entry: Index, start: Index, width: Value
) -> None:
    left, right, function, target = pointers
    left_op, left_stride = _layout(spec.a_strides, spec.m, spec.k) or (0, 0)
    right_op, right_stride = _layout(spec.b_strides, spec.k, spec.n) or (0, 0)
    right = b.address(F32, right, b.mul(start, spec.b_strides[-1]))
    target = b.address(F32, target, start)
    for axis in reversed(range(len(spec.batch))):
        entry, coordinate = b.split(entry, spec.batch[axis])
        left = b.address(F32, left, b.mul(coordinate, spec.a_strides[axis]))
        right = b.address(F32, right, b.mul(coordinate, spec.b_strides[axis]))
        target = b.address(F32, target, b.mul(coordinate, spec.c_strides[axis]))

    orders = (constant(I32, value) for value in (_ROW_MAJOR, left_op, right_op))
    arguments = [
        *orders,
        *(constant(I64, spec.m), b.cast(width, I64), constant(I64, spec.k)),
        *(constant(F32, 1.0), left, constant(I64, left_stride)),
        *(right, constant(I64, right_stride)),
        *(constant(F32, 0.0), target, constant(I64, spec.c_strides[-2])),
    ]
    assert function.type == PTR
    b.call_pointer(function, None, arguments)


def _layout(strides: tuple[int, ...], rows: int, columns: int) -> tuple[int, int] | None:
    """Find whether a matrix is stored by rows or transposed, and its leading dimension."""
    down, right = strides[-2:]
    if right == 1 and (down >= columns or rows == 1):
        return _PLAIN, max(down, columns)
    if down == 1 and (right >= rows or columns == 1):
        return _TRANSPOSED, max(right, rows)
    return None
