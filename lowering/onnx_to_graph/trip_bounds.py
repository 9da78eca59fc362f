"""Bound the iterations of a loop by its condition: a counter with a constant step has a limit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects.graph import ConstantOp
from ...dialects.types import shape_of
from .padded import Sizes
from .value_ranges import range_of

_MOVES = ("graph.reshape", "graph.broadcast", "graph.cast")


def trips_by_condition(
    going: SSAValue,
    arguments: Sequence[SSAValue],
    nexts: Sequence[SSAValue],
    firsts: Sequence[float | None],
    sizes: Sizes,
) -> float:
    """The most iterations; infinity where the condition bounds none.

    Args:
        going: the condition after an iteration: whether the loop runs again.
        arguments, nexts: the carried values before and after it.
        firsts: known numbers with which they begin.
    """
    found = math.inf
    for value, limit in _below(going, sizes):
        for argument, after, first in zip(arguments, nexts, firsts, strict=True):
            step = _step(after, argument, sizes)
            if first is None or step is None:
                continue
            if _same(value, after) or _step(value, argument, sizes) == step:
                found = min(found, max(1, math.ceil((limit - first) / step)))
            elif _same(value, argument):
                found = min(found, max(1, math.ceil((limit - first) / step) + 1))
    return found


def _below(condition: SSAValue, sizes: Sizes) -> Iterator[tuple[SSAValue, float]]:
    """Values that are below a number wherever a condition holds."""
    op = condition.owner
    if not isinstance(op, Operation):
        return
    if op.name in _MOVES:
        yield from _below(op.operands[0], sizes)
    elif op.name == "graph.and":
        for operand in op.operands:
            yield from _below(operand, sizes)
    elif op.name == "graph.where":
        asked, one, other = op.operands
        if _is_false(other):
            yield from _below(asked, sizes)
            yield from _below(one, sizes)
        elif _is_false(one):
            yield from _below(other, sizes)
    elif op.name in ("graph.less", "graph.less_equal", "graph.greater", "graph.greater_equal"):
        turned = op.name.startswith("graph.greater")
        small, large = reversed(op.operands) if turned else op.operands
        numbers = range_of(large, sizes.ranges)
        if numbers is not None and shape_of(large) == shape_of(small):
            more = 1 if op.name.endswith("equal") else 0
            yield small, float(numbers.high.max()) + more


def _is_false(value: SSAValue) -> bool:
    op = value.owner
    while isinstance(op, Operation) and op.name in _MOVES:
        op = op.operands[0].owner
    return isinstance(op, ConstantOp) and not op.array().any()


def _plain(value: SSAValue) -> SSAValue:
    while isinstance(op := value.owner, Operation) and op.name == "graph.reshape":
        value = op.operands[0]
    return value


def _same(a: SSAValue, b: SSAValue) -> bool:
    return _plain(a) is _plain(b)


def _step(after: SSAValue, before: SSAValue, sizes: Sizes) -> float | None:
    """The positive number that is added to a value; None where it is something else."""
    op = _plain(after).owner
    if not isinstance(op, Operation) or op.name != "graph.add":
        return None
    for first, second in (op.operands, reversed(op.operands)):
        numbers = range_of(second, sizes.ranges) if _same(first, before) else None
        if numbers is not None and float(numbers.low.min()) == float(numbers.high.max()) > 0:
            return float(numbers.low.min())
    return None


__all__ = ["trips_by_condition"]
