"""Call the BLAS that the scipy-openblas32 wheel carries, from generated code.

The library's address travels in a kernel's argument array, never in its text. It runs one thread;
the pool shares the columns of the result.
"""

import ctypes
import math
from functools import cache

from .emit import Emitter
from .gemm_spec import GemmSchedule, GemmSpec, default_schedule
from .isa import Isa
from .module import KernelCode, Module, kernel
from .types import F32, I32, PTR, Index, Value, constant

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112  # CBLAS_ORDER and CBLAS_TRANSPOSE
_SLICE_COLUMNS = 256
_MOST_SLICES = 16


@cache
def _library() -> ctypes.CDLL | None:
    try:
        import scipy_openblas32 as wheel
    except ImportError:
        return None
    path = f"{wheel.get_lib_dir()}/{wheel.get_library(fullname=True)}"
    library = ctypes.CDLL(path)
    library.scipy_openblas_set_num_threads(1)
    return library


def sgemm_address() -> int | None:
    """Find cblas_sgemm; None where the wheel is not installed."""
    library = _library()
    if library is None:
        return None
    return ctypes.cast(library.scipy_cblas_sgemm, ctypes.c_void_p).value


def supports(spec: GemmSpec) -> bool:
    """Say whether BLAS can address the operands: one stride of each matrix must be 1."""
    return (
        _layout(spec.a_strides, spec.m, spec.k) is not None
        and _layout(spec.b_strides, spec.k, spec.n) is not None
        and spec.c_strides[-2] >= spec.n
        and min(spec.m, spec.n, spec.k) > 0
    )


def default_gemm(spec: GemmSpec, isa: Isa, *, constant_b: bool) -> GemmSchedule | None:
    """Choose a schedule for `emit_gemm`; None means `emit_blas_gemm` is expected to be faster.

    Measured on Zen 5, one thread: packed and direct panels are ahead of OpenBLAS nearly everywhere
    (4 times for a vector, 1.1 to 1.5 from 128 to 2048) and at worst 15% behind (100 cubed, where
    the last vector is mostly padding). A large product of two activations whose rows share cache
    sets must copy B, which OpenBLAS does better: 1.1 times at 1024. Where the kernels may not use
    the vector unit that the machine has ("plain"), OpenBLAS, which looks for itself, wins from
    small sizes on.
    """
    schedule = default_schedule(spec, isa, constant_b=constant_b)
    if sgemm_address() is None or not supports(spec):
        return schedule
    smallest = min(spec.m, spec.n, spec.k)
    if schedule.right == "copied" and smallest >= 512:
        return None
    return None if isa.vector_bytes == 16 and isa.registers == 16 and smallest >= 32 else schedule


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

    def number(value: int) -> Value:
        return constant(I32, value)

    arguments = [
        *(number(_ROW_MAJOR), number(left_op), number(right_op)),
        *(number(spec.m), b.cast(width, I32), number(spec.k)),
        *(constant(F32, 1.0), left, number(left_stride), right, number(right_stride)),
        *(constant(F32, 0.0), target, number(spec.c_strides[-2])),
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
