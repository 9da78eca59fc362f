"""Between which numbers a computed value lies: bounds of sizes that data decide.

Ranges are followed from what an op is computed from, as intervals of real numbers; a small value
has one for each element. Unknown data have the range of their element type, if that is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import i8, i64
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.dims import is_symbolic
from ...dialects.graph import ConstantOp, GraphOp, OpaqueOp, WeightOp
from ...dialects.types import Array, element_of, is_bool, is_float, is_signed_int, shape_of

# Larger values have one range for all elements.
EACH = 256
_DEPTH = 200
_BYTES = {"i8": (-128.0, 127.0), "ui8": (0.0, 255.0)}


@dataclass(frozen=True)
class ValueRange:
    """The least and the greatest number, of every element or (no dims) of all."""

    low: Array
    high: Array

    @classmethod
    def of(cls, low: float, high: float) -> ValueRange:
        return cls(np.asarray(low, np.float64), np.asarray(high, np.float64))

    def each(self, function: Callable[[Array], Array]) -> ValueRange:
        """Elements moved alike in both bounds."""
        return ValueRange(function(self.low), function(self.high))

    def all(self) -> ValueRange:
        """One range for all elements."""
        return ValueRange.of(self.low.min(initial=math.inf), self.high.max(initial=-math.inf))

    def at(self, position: int) -> tuple[float, float]:
        """The range of an element, counted in row-major order."""
        low, high = (a if a.ndim == 0 else a.ravel()[position] for a in (self.low, self.high))
        return float(low), float(high)


Facts: TypeAlias = "Mapping[SSAValue, ValueRange]"


def by_inputs_alone(value: SSAValue | None, facts: Facts) -> bool:
    """Whether integer inputs of the program, and constants, decide a value."""
    waiting: list[SSAValue] = [] if value is None else [value]
    seen: set[SSAValue] = set()
    reads = False
    while waiting:
        v = waiting.pop()
        if v in seen:
            continue
        seen.add(v)
        op = v.owner
        if isinstance(op, Block):
            if v in facts or is_float(element_of(v)):  # of a body, or data
                return False
            reads = True
        elif isinstance(op, OpaqueOp) or (op.regions and op.name != "graph.constant"):
            return False
        elif not isinstance(op, ConstantOp | WeightOp):
            waiting += op.operands
    return reads


def range_of(value: SSAValue, facts: Facts, depth: int = 0) -> ValueRange | None:
    """The numbers that a value's elements lie between; None where nothing bounds them.

    Args:
        facts: ranges of arguments of bodies.
    """
    if value in facts:
        return facts[value]
    op = value.owner
    found = _of_op(op, value, facts, depth + 1) if isinstance(op, Operation) else None
    if found is None:
        if is_bool(element_of(value)):
            return ValueRange.of(0, 1)
        bytes_ = _BYTES.get(str(element_of(value)))
        return None if bytes_ is None else ValueRange.of(*bytes_)
    return found.all() if found.low.size > EACH else found


def _of_op(op: Operation, value: SSAValue, facts: Facts, depth: int) -> ValueRange | None:
    if depth > _DEPTH:
        return None
    if isinstance(op, ConstantOp):
        array = op.array().astype(np.float64)
        return ValueRange(array, array)
    if any(is_symbolic(shape_of(v)) for v in (*op.operands, *op.results)):
        return None
    if isinstance(op, OpaqueOp):
        return _of_kept(op, value)
    if not isinstance(op, GraphOp):
        return None
    if op.name in _MADE:
        return _MADE[op.name](op)
    rule = _RULES.get(op.name)
    if rule is None:
        return None
    operands: list[ValueRange] = []
    for operand in op.operands:
        found = range_of(operand, facts, depth)
        if found is None and op.name not in _BOUNDING:
            return None
        operands.append(found or ValueRange.of(-math.inf, math.inf))
    try:
        with np.errstate(all="ignore"):
            moved = rule(op, operands)
    except ValueError:  # shapes of ranges that are not each element's
        return None
    return None if np.isnan(moved.low).any() or np.isnan(moved.high).any() else moved


def _of_kept(op: OpaqueOp, value: SSAValue) -> ValueRange | None:
    """Numbers of rows, positions, and what moves numbers."""
    results, kind = list(op.outputs), op.op_type.data
    counted = any(entry.data.startswith("isoform=") for entry in op.opset) and len(results) > 1
    if counted and value is results[-1]:
        return ValueRange.of(0, max(shape_of(results[0])))
    if kind == "NonZero":
        return ValueRange.of(0, max(shape_of(op.operands[0]), default=1))
    if kind == "TopK" and value is results[-1] and element_of(value) == i64:
        return ValueRange.of(0, max(shape_of(op.operands[0])))
    return None


# --- ops that move elements ---

_Rule: TypeAlias = "Callable[[GraphOp, list[ValueRange]], ValueRange]"


def _full(op: GraphOp, k: int, found: ValueRange) -> ValueRange:
    """A range for each element of operand `k`. Raises ValueError where there are too many."""
    shape = shape_of(op.operands[k])
    if math.prod(shape) > EACH:
        raise ValueError
    return found.each(lambda a: np.broadcast_to(a, shape))


def _moving(move: Callable[[GraphOp, Array], Array]) -> _Rule:
    """Of an op that moves single elements of its first operand."""

    def rule(op: GraphOp, given: list[ValueRange]) -> ValueRange:
        whole = [shape_of(v) for v in (op.operands[0], op.results[0])]
        if max(math.prod(s) for s in whole) > EACH:
            return given[0].all()
        return _full(op, 0, given[0]).each(lambda a: move(op, a))

    return rule


def _sliced(op: GraphOp, a: Array) -> Array:
    starts, sizes, steps = (op.ints(name) for name in ("starts", "sizes", "steps"))
    index = [
        start + step * np.arange(size)
        for start, size, step in zip(starts, sizes, steps, strict=True)
    ]
    return a[np.ix_(*index)] if index else a


def _concat(op: GraphOp, given: list[ValueRange]) -> ValueRange:
    if math.prod(shape_of(op.results[0])) > EACH:
        return _union(op, given)
    parts = [_full(op, k, found) for k, found in enumerate(given)]
    axis = op.value("axis")
    return ValueRange(
        np.concatenate([p.low for p in parts], axis), np.concatenate([p.high for p in parts], axis)
    )


def _gather(op: GraphOp, given: list[ValueRange]) -> ValueRange:
    places = op.operands[1].owner
    if not isinstance(places, ConstantOp):
        return given[0].all()
    indices, axis = places.array(), op.value("axis")
    return _full(op, 0, given[0]).each(lambda a: np.take(a, indices, axis))


def _union(op: GraphOp, given: list[ValueRange]) -> ValueRange:
    ranges = [g.all() for g in given]
    return ValueRange.of(min(float(r.low) for r in ranges), max(float(r.high) for r in ranges))


# --- ops that compute ---


def _corners(function: Callable[[Array, Array], Array]) -> _Rule:
    """Of an op of two operands whose extremes are at the ends of theirs."""

    def rule(op: GraphOp, given: list[ValueRange]) -> ValueRange:
        a, b = given
        ends = [function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return ValueRange(np.minimum.reduce(ends), np.maximum.reduce(ends))

    return rule


def _rising(function: Callable[[Array], Array]) -> _Rule:
    return lambda op, given: given[0].each(function)


def _div(op: GraphOp, given: list[ValueRange]) -> ValueRange:
    """By numbers above 0; towards zero for integers."""
    if float(given[1].low.min(initial=math.inf)) <= 0:
        raise ValueError
    found = _corners(np.divide)(op, given)
    return found if is_float(element_of(op.results[0])) else found.each(np.trunc)


def _cast(op: GraphOp, given: list[ValueRange]) -> ValueRange:
    to = element_of(op.results[0])
    whole = is_signed_int(to) and to != i8
    if not (whole or is_float(to)):
        raise ValueError  # it may wrap
    return given[0].each(np.trunc) if whole else given[0]


def _abs(op: GraphOp, given: list[ValueRange]) -> ValueRange:
    low, high = given[0].low, given[0].high
    most = np.maximum(np.abs(low), np.abs(high))
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return ValueRange(least, most)


def _sum(op: GraphOp, given: list[ValueRange]) -> ValueRange:
    x = shape_of(op.operands[0])
    count = math.prod(x[axis] for axis in op.ints("axes"))
    return given[0].all().each(lambda a: a * count)


def _extremum(function: Callable[..., Array]) -> _Rule:
    """The least of the least and of the greatest numbers, where each element's are known."""

    def rule(op: GraphOp, given: list[ValueRange]) -> ValueRange:
        if math.prod(shape_of(op.operands[0])) > EACH:
            return given[0].all()
        axes, keep = tuple(op.ints("axes")), op.value("keep_dims")
        return _full(op, 0, given[0]).each(lambda a: function(a, axis=axes, keepdims=keep))

    return rule


def _where(op: GraphOp, given: list[ValueRange]) -> ValueRange:
    asked, a, b = given
    always, never = asked.low == 1, asked.high == 0
    return ValueRange(
        np.where(always, a.low, np.where(never, b.low, np.minimum(a.low, b.low))),
        np.where(always, a.high, np.where(never, b.high, np.maximum(a.high, b.high))),
    )


def _compared(
    always: Callable[[ValueRange, ValueRange], Array],
    ever: Callable[[ValueRange, ValueRange], Array],
) -> _Rule:
    """Of a comparison: 1 where it holds for all numbers of both ranges, 0 where for none.

    Of floats it may be 0 always: any of them may be NaN.
    """

    def rule(op: GraphOp, given: list[ValueRange]) -> ValueRange:
        a, b = given
        low = always(a, b) & (not is_float(element_of(op.operands[0])))
        return ValueRange(low.astype(np.float64), ever(a, b).astype(np.float64))

    return rule


_RULES: dict[str, _Rule] = {
    "graph.reshape": _moving(lambda op, a: a.reshape(shape_of(op.results[0]))),
    "graph.broadcast": lambda op, given: given[0].all(),
    "graph.transpose": _moving(lambda op, a: a.transpose(op.ints("perm"))),
    "graph.slice": _moving(_sliced),
    "graph.split": lambda op, given: given[0].all(),
    "graph.concat": _concat,
    "graph.gather": _gather,
    "graph.add": _corners(np.add),
    "graph.sub": _corners(np.subtract),
    "graph.mul": _corners(np.multiply),
    "graph.max": _corners(np.maximum),
    "graph.min": _corners(np.minimum),
    "graph.div": _div,
    "graph.neg": lambda op, given: ValueRange(-given[0].high, -given[0].low),
    "graph.abs": _abs,
    "graph.floor": _rising(np.floor),
    "graph.ceil": _rising(np.ceil),
    "graph.round": _rising(np.round),
    "graph.clip": lambda op, given: given[0].each(
        lambda a: np.clip(a, op.value("min"), op.value("max"))
    ),
    "graph.relu": _rising(lambda a: np.maximum(a, 0)),
    "graph.cast": _cast,
    "graph.where": _where,
    "graph.equal": _compared(
        lambda a, b: (a.low == a.high) & (b.low == b.high) & (a.low == b.low),
        lambda a, b: (a.low <= b.high) & (b.low <= a.high),
    ),
    "graph.less": _compared(lambda a, b: a.high < b.low, lambda a, b: a.low < b.high),
    "graph.less_equal": _compared(lambda a, b: a.high <= b.low, lambda a, b: a.low <= b.high),
    "graph.greater": _compared(lambda a, b: a.low > b.high, lambda a, b: a.high > b.low),
    "graph.greater_equal": _compared(lambda a, b: a.low >= b.high, lambda a, b: a.high >= b.low),
    "graph.reduce_sum": _sum,
    "graph.reduce_max": _extremum(np.max),
    "graph.reduce_min": _extremum(np.min),
    "graph.reduce_mean": lambda op, given: given[0].all(),
}
# Ops that bound what nothing else does.
_BOUNDING = ("graph.min", "graph.max", "graph.clip")
_MADE: dict[str, Callable[[GraphOp], ValueRange]] = {
    "graph.arg_max": lambda op: ValueRange.of(0, max(shape_of(op.operands[0]))),
    "graph.iota": lambda op: ValueRange.of(
        *sorted(op.ints("start")[0] + op.ints("step")[0] * k for k in (0, op.ints("size")[0] - 1))
    ),
}

__all__ = ["EACH", "Facts", "ValueRange", "by_inputs_alone", "range_of"]
