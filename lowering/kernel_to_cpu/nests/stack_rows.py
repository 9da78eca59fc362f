"""Rows of intermediate values on the stack, with zeros around them where readers step outside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ....dialects.index import range_of
from ....dialects.types import tensor_type
from ..emit.access import Access, memory_type
from ..emit.emitter import Emitter
from ..emit.types import I64, Index, Type, Value, constant
from .nest import NestPlan, Row, ScopePlan

# Zeros beside a row: readers further outside check their bounds.
MOST_ZEROS = 64
# Written out whole, a row would be kept in more registers than there are.
UNROLL = 4
# Points that take turns, what their rows may take of the first-level cache, and the largest result
# for which they do: from beyond the second-level cache rows are read while the last one is stored.
TOGETHER = 2
MOST_BYTES = 32 << 10
MOST_RESULT = 1 << 19


def reserve_row(
    b: Emitter,
    scope: ScopePlan,
    plan: NestPlan,
    lanes: int,
    vector: tuple[int, int] = (-1, 1),
    points: int = 1,
) -> Row:
    """Room for what a scope makes at a point (of all lanes of `vector`), and a vector behind it.

    Where it is for several points, their rows follow each other.
    """
    row = Row(Value("", I64), scope, _halo(scope, plan), vector)
    shape = tensor_type(scope.op.result).get_shape()
    sizes = [shape[d] + low + high for d, (low, high) in zip(row.dims, row.halo, strict=True)]
    dtype = memory_type(tensor_type(scope.op.result).element_type)
    step = -(-(math.prod(sizes) * vector[1] + lanes) // lanes) * lanes
    pointer = b.reserve(dtype, step * points)
    if any(low or high for low, high in row.halo):
        _clear(b, pointer, dtype, step * points, lanes)
    return Row(pointer, scope, row.halo, vector, step)


def moved(b: Emitter, row: Row, by: Index) -> Row:
    """The row so many elements on."""
    return replace(row, pointer=b.address(row_access(row).memory, row.pointer, by))


def row_access(row: Row) -> Access:
    """Where the scope's value at its own place is."""
    element = tensor_type(row.made.op.result).element_type
    return Access(row.pointer, element, row.flat(row.made.here))


def _clear(b: Emitter, pointer: Value, dtype: Type, count: int, lanes: int) -> None:
    """Zeros in so many elements, whole vectors of them."""
    zeros = constant(dtype.vector(lanes), 0)
    with b.loop(0, count, lanes) as index:
        b.store(zeros, pointer, index)


def _halo(scope: ScopePlan, plan: NestPlan) -> tuple[tuple[int, int], ...]:
    """How far readers, to whom the outside is zero, step beyond each end."""
    shape = tensor_type(scope.op.result).get_shape()
    dims = Row(Value("", I64), scope, ()).dims
    halo = [(0, 0) for _ in dims]
    for reader in plan.scopes:
        for operand in reader.reads:
            if operand.source is not scope.op.result or operand.outside != 0.0:
                continue
            for k, d in enumerate(dims):
                first, last = range_of(operand.index[d], plan.extents)
                low, high = max(0, -first), max(0, last - shape[d] + 1)
                if max(low, high) <= MOST_ZEROS:
                    halo[k] = (max(halo[k][0], low), max(halo[k][1], high))
    return tuple(halo)


def stages(scopes: Sequence[ScopePlan]) -> list[list[ScopePlan]]:
    """The scopes up to each summation, and the rest."""
    stages: list[list[ScopePlan]] = [[]]
    for scope in scopes:
        stages[-1].append(scope)
        if scope.sums and not scope.own:
            stages.append([])
    return [stage for stage in stages if stage]
