"""Gathers at known positions: a slice, a part or a row, read by an index expression.

Exporters write `x[:, 0]` and the like as a gather by a constant. If the constant is affine in
its own position, the result is an ordinary read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.canonical_body import read
from ...dialects.canonical_scope import Scope, Source, scope
from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, GraphOp, WeightOp
from ...dialects.graph.data import GatherOp
from ...dialects.index import Index, iterators, normalise
from ...dialects.op_reference import evaluate_op
from ...dialects.types import Array, element_of, is_float, shape_of

DataOf: TypeAlias = "Callable[[WeightOp], Array | None]"

# Limits for computing positions: ops and elements.
_MOST_STEPS, _MAX_POSITIONS = 64, 1 << 16


def static_gather(op: GatherOp, x: Source, data: DataOf) -> Scope | None:
    """The read of a gather; None if its positions depend on inputs or are not affine.

    Args:
        data: the numbers of a weight; None if they are not available.
    """
    positions = constant_array(op.indices, data)
    axis = op.value("axis")
    if positions is None or not positions.size:
        return None
    size = x.shape[axis]
    if positions.min() < -size or positions.max() >= size:
        return None
    shape = shape_of(op.result)
    here = iterators(len(shape))
    at = _affine(positions % size, here[axis : axis + positions.ndim])
    if at is None:
        return None
    index = [*here[:axis], at, *here[axis + positions.ndim :]]
    index = [normalise(e, shape) for e in index]
    return scope(shape, element_of(op.result), read(x, index, tuple(shape)))


def constant_array(value: SSAValue, data: DataOf) -> Array | None:
    """The value of an integer expression that does not depend on inputs."""
    steps: list[Operation] = []
    if not _collect(value, steps):
        return None
    values: dict[SSAValue, Array] = {}
    for op in steps:
        if isinstance(op, WeightOp):
            array = data(op)
            if array is None:
                return None
            values[op.result] = array
            continue
        try:
            found = evaluate_op(op, [values[v] for v in op.operands], {})
        except UserError:
            return None
        values.update(zip(op.results, found, strict=True))
    return np.asarray(values[value])


def _collect(value: SSAValue, steps: list[Operation]) -> bool:
    """List the integer ops that a value needs, in dependency order; False if there are too many."""
    op = value.owner
    if not isinstance(op, Operation) or len(steps) > _MOST_STEPS:
        return False
    if op in steps:
        return True
    if any(is_float(element_of(v)) or math.prod(shape_of(v)) > _MAX_POSITIONS for v in op.results):
        return False
    if not isinstance(op, WeightOp | ConstantOp | GraphOp | ScopeOp | OnesOp):
        return False
    if not all(_collect(operand, steps) for operand in op.operands):
        return False
    steps.append(op)
    return True


def _affine(positions: Array, here: list[Index]) -> Index | None:
    """The index that takes these values over the iterators, if there is one."""
    first = int(positions.flat[0])
    at, values = Index(first), np.full(positions.shape, first, np.int64)
    for dim, size in enumerate(positions.shape):
        if size == 1:
            continue
        second = [0] * positions.ndim
        second[dim] = 1
        step = int(positions[tuple(second)]) - first
        at = at + here[dim] * step
        spread = [1] * positions.ndim
        spread[dim] = size
        values = values + step * np.arange(size).reshape(spread)
    return at if np.array_equal(values, positions) else None


__all__ = ["DataOf", "constant_array", "static_gather"]
