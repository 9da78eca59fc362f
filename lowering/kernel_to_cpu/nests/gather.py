"""Native code for `graph.gather`: rows of a table at data-dependent positions."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerAttr

from ....dialects.kernel import CallOp
from ....dialects.program import where
from ....dialects.types import shape_of, tensor_type
from ..emit.access import memory_type
from ..emit.emitter import Emitter, Mask
from ..emit.module import KernelCode, Module, kernel
from ..emit.types import F32, I64, Index, Type, Value
from ..isa import Isa
from ..kernel_call import Argument, KernelCall


def gathered_size(op: CallOp) -> int:
    """The size of the dim that indices of a gather select from."""
    return shape_of(op.inputs[0])[_axis(op)]


def place_of(op: CallOp) -> str:
    """The name of a gather for users: that of its original graph op."""
    return where(op).replace(op.name, op.callee.data, 1)


def _axis(op: CallOp) -> int:
    axis = op.config.data["axis"]
    assert isinstance(axis, IntegerAttr)
    return axis.value.data


def lower_gather(op: CallOp, isa: Isa) -> list[KernelCall]:
    """The call that copies one slice per (outer place, index).

    Negative indices count from the end. An index outside the table reads the nearest row and sets
    the alarm: the session raises an error after the native call.
    """
    x, indices = op.inputs
    axis = _axis(op)
    shape = shape_of(x)
    outer, size, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    count = math.prod(shape_of(indices))
    dtype = memory_type(tensor_type(x).element_type)
    index_type = memory_type(tensor_type(indices).element_type)
    lanes = isa.lanes(dtype)

    if inner == 1 and size:
        code = _of_elements(outer, size, count, dtype, index_type, isa)
        arguments = Argument(x), Argument(indices), Argument(alarm=op), Argument(op.outputs[0])
        return [KernelCall(code, arguments)]

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        table, positions, alarm, out = pointers
        if size == 0:  # every index is invalid, and there is no row to read
            if outer * count:
                b.store(b.value(1, I64), alarm)
            return
        with b.loop(low, high) as item:
            before, number = b.split(item, count)
            given = b.cast(b.load(index_type, positions, number), I64)
            wrapped = b.select(b.compare("lt", given, 0), b.add(given, size), given)
            position = b.minimum(b.maximum(wrapped, 0), size - 1)
            with b.when(b.compare("ne", wrapped, position)):
                b.store(b.value(1, I64), alarm)
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

    code = kernel(Module(), 4, outer * count, body)
    arguments = Argument(x), Argument(indices), Argument(alarm=op), Argument(op.outputs[0])
    return [KernelCall(code, arguments)]


# Elements of an item: enough that its division by the number of indices costs little.
_ELEMENTS = 512


def _of_elements(
    outer: int, size: int, count: int, dtype: Type, index_type: Type, isa: Isa
) -> KernelCode:
    """Single elements, a vector of indices at a time."""
    lanes = isa.lanes(F32)
    blocks = -(-count // _ELEMENTS)

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        table, positions, alarm, out = pointers

        def vector(before: Index, start: Index, mask: Mask) -> None:
            given = b.load(index_type.vector(lanes), positions, start, mask=mask)
            given = b.cast(given, I64)
            wrapped = b.select(b.compare("lt", given, 0), b.add(given, size), given)
            position = b.minimum(b.maximum(wrapped, 0), size - 1)
            wrong = b.compare("ne", wrapped, position)
            with b.when(b.reduce("or", wrong)):
                b.store(b.value(1, I64), alarm)
            row = b.address(dtype, table, b.mul(before, size))
            value = b.gather(dtype.vector(lanes), row, position)
            b.store(value, out, b.add(b.mul(before, count), start), mask=mask)

        with b.loop(low, high) as item:
            before, block = b.split(item, blocks)
            first = b.mul(block, _ELEMENTS)
            left = b.sub(count, first)
            whole = b.minimum(left, _ELEMENTS) if count % _ELEMENTS else _ELEMENTS
            vectors = b.mul(b.split(whole, lanes)[0], lanes)
            with b.loop(0, vectors, lanes) as step:
                vector(before, b.add(first, step), None)
            if count % lanes:
                with b.when(b.compare("lt", b.value(vectors, I64), whole)):
                    vector(before, b.add(first, vectors), count % lanes)

    return kernel(Module(), 4, outer * blocks, body)
