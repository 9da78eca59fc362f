"""Zero the halo of a buffer before its values are written: convolutions read into it."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from ....dialects.kernel import layout_of
from ....dialects.types import tensor_type
from ..emit.access import memory_type
from ..emit.emitter import Emitter
from ..emit.module import Module, kernel
from ..emit.types import Index, Value, constant
from ..isa import Isa
from ..kernel_call import Argument, KernelCall


def lower_halo(value: SSAValue, isa: Isa) -> list[KernelCall]:
    """The call that zeroes the halo of a value's buffer; none if it has no halo.

    The buffer is visited as [outer][rows][row]: rows in the halo are zeroed whole, of the others
    the two ends. Buffers share an arena, so the halo must be zeroed on every run.
    """
    type_ = tensor_type(value)
    layout = layout_of(type_)
    if not any(a or b for a, b in layout.halo):
        return []
    if any(a or b for a, b in layout.room):
        return []  # a part of a join: the halo of the whole buffer is zeroed after all parts
    sizes = [type_.get_shape()[d] for d in layout.dims]
    halos = [layout.halo[d] for d in layout.dims]
    dtype = memory_type(type_.element_type)
    lanes = isa.lanes(dtype)
    module = Module()
    padded = [n + a + b for n, (a, b) in zip(sizes, halos, strict=True)]

    def clear(b: Emitter, pointer: Value, start: Index, count: int) -> None:
        zero = constant(dtype.vector(lanes), 0)
        whole = count - count % lanes
        if whole:
            with b.loop(0, whole, lanes) as step:
                b.store(zero, pointer, b.add(start, step))
        if whole < count:
            b.store(zero, pointer, b.add(start, whole), mask=count - whole)

    def walk(b: Emitter, pointer: Value, start: Index, depth: int) -> None:
        if depth == len(padded) or not any(a or z for a, z in halos[depth:]):
            return
        stride = math.prod(padded[depth + 1 :])
        before, after = halos[depth]
        if before:
            clear(b, pointer, start, before * stride)
        if after:
            clear(b, pointer, b.add(start, (before + sizes[depth]) * stride), after * stride)
        if any(a or z for a, z in halos[depth + 1 :]):
            with b.loop(0, sizes[depth]) as index:
                inner = b.add(start, b.mul(b.add(index, before), stride))
                walk(b, pointer, inner, depth + 1)

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        stride = math.prod(padded[1:])
        with b.loop(low, high) as item:  # an item is one entry of the outermost dim, the batch
            walk(b, pointers[0], b.mul(item, stride), 1)

    assert halos[0] == (0, 0)
    code = kernel(module, 1, sizes[0], body)
    return [KernelCall(code, (Argument(value),))]
