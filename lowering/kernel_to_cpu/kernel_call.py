"""One call of generated code: the kernel, and what its argument table holds."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.kernel import CallOp
from ...dialects.types import Array
from .emit.module import KernelCode


@dataclass(frozen=True)
class Argument:
    """An entry of a kernel's argument table: a value's buffer, or data made at compile time.

    `offset` counts elements from the start of the buffer. An `alarm` is an i64 that is 0 before
    each run and that the kernel sets where an index of this gather is out of range.
    """

    value: SSAValue | None = None
    data: Array | None = None
    offset: int = 0
    alarm: CallOp | None = None


@dataclass(frozen=True)
class KernelCall:
    """One kernel to run and its arguments, the result's buffer last."""

    code: KernelCode
    arguments: tuple[Argument, ...]
