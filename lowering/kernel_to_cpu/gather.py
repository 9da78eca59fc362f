"""Native code for `graph.gather`: rows of a table at positions that are data."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerAttr

from ...dialects.kernel import CallOp
from ...dialects.types import shape_of, tensor_type
from .access import memory_type
from .contraction import Argument, Call
from .emit import Emitter
from .isa import Isa
from .module import Module, kernel
from .types import I64, Index, Value


def lower_gather(op: CallOp, isa: Isa) -> list[Call]:
    """The call that copies one slice per (outer place, index).

    Indices count from the end where negative. One outside the table reads its nearest row: native
    code cannot raise; `isoform run --reference` reports it.
    """
    x, indices = op.inputs
    axis_attr = op.config.data["axis"]
    assert isinstance(axis_attr, IntegerAttr)
    axis = axis_attr.value.data
    shape = shape_of(x)
    outer, size, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    count = math.prod(shape_of(indices))
    dtype = memory_type(tensor_type(x).element_type)
    index_type = memory_type(tensor_type(indices).element_type)
    lanes = isa.lanes(dtype)

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        table, positions, out = pointers
        with b.loop(low, high) as item:
            before, number = b.split(item, count)
            position = b.cast(b.load(index_type, positions, number), I64)
            wrapped = b.add(position, size)
            position = b.select(b.compare("lt", position, 0), wrapped, position)
            position = b.minimum(b.maximum(position, 0), size - 1)
            source = b.mul(b.add(b.mul(before, size), position), inner)
            target = b.mul(item, inner)
            whole = inner - inner % lanes
            if whole:
                with b.loop(0, whole, lanes) as step:
                    value = b.load(dtype.vector(lanes), table, b.add(source, step))
                    b.store(value, out, b.add(target, step))
            if whole < inner:
                mask = inner - whole
                value = b.load(dtype.vector(lanes), table, b.add(source, whole), mask=mask)
                b.store(value, out, b.add(target, whole), mask=mask)

    code = kernel(Module(), 3, outer * count, body)
    return [Call(code, (Argument(x), Argument(indices), Argument(op.outputs[0])))]
