"""Results that are an input with rows behind it: the caches of a decoder.

The bounded program then takes the input with the result's extents, so that both may be one array
of the caller: the result's first rows are there before, and only those behind them are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from ...dialects.dims_attr import dims_as_written
from ...dialects.graph.shaping import ConcatOp


@dataclass(frozen=True)
class GrownInput:
    """A result of @main that is an input, and rows behind it.

    Attributes:
        given, result: their numbers.
        axis: the dim along which the rows stand.
    """

    given: int
    result: int
    axis: int


def growths(main: FuncOp, bounded: Collection[str]) -> list[GrownInput]:
    """The results that grow an input along the only dim with a bound.

    Nothing else reads the input: what its padding holds changes when the result is written.
    """
    returned = main.body.block.last_op
    assert isinstance(returned, ReturnOp)
    values = list(returned.arguments)
    times, found = Counter(values), list[GrownInput]()
    for number, value in enumerate(values):
        source = _grown(value)
        if source is None or times[value] > 1:
            continue
        given, axis = source
        padded = [
            k
            for k, dim in enumerate(dims_as_written(given.type))
            if not isinstance(dim, int) and any(s.name in bounded for s in dim.free_symbols)
        ]
        if padded == [axis]:
            found.append(GrownInput(given.index, number, axis))
    return found


def _grown(value: SSAValue) -> tuple[BlockArgument, int] | None:
    """The input that a value has more rows than, and the dim; None if it is no such value."""
    op = value.owner if isinstance(value, OpResult) else None
    if not isinstance(op, ConcatOp) or len(op.operands) != 2:
        return None
    first, behind = op.operands
    axis = op.value("axis")
    if isinstance(first, BlockArgument) and first.has_one_use() and behind is not first:
        return first, axis
    return None


def grows_attr(
    results: int, names: list[str], found: Collection[GrownInput]
) -> ArrayAttr[Attribute]:
    """The entry of each result: the name of the input that it grows and the dim, or nothing."""
    by_result = {growth.result: growth for growth in found}
    entries: list[ArrayAttr[Attribute]] = []
    for k in range(results):
        one = by_result.get(k)
        entry = [] if one is None else [StringAttr(names[one.given]), IntegerAttr(one.axis, i64)]
        entries.append(ArrayAttr[Attribute](entry))
    return ArrayAttr[Attribute](entries)


__all__ = ["GrownInput", "grows_attr", "growths"]
