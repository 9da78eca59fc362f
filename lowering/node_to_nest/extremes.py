"""The position of the largest or smallest along an axis.

The first NaN is the result, as in numpy. Lanes are neighbours across the axis, or, along a row,
positions a strip apart: each lane finds its own, of which the best is taken at the end.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i32, i64

from ...dialects.index import Index
from ...dialects.nest import ForOp
from ...dialects.nest_computed import IndexOp
from ...dialects.types import is_float
from .code import NestBuffer, Scalar
from .node import KeptNode, Writer
from .strips import ALONG, LANES, LEAST_INNER, Lane, Strip, is_vector, row_strip, strips

_LONGEST = 1 << 31  # positions are 32 bits


def arg_extremum(name: str) -> Writer:
    """The position of the first, or the last, greatest ("g") or least ("l")."""

    def write(node: KeptNode) -> None:
        x, code = node[0], node.code
        axis = node.axis(len(x.shape), 0)
        n, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
        outer = math.prod(x.shape[:axis])
        if is_vector(x.element) and n < _LONGEST:
            if inner >= LEAST_INNER:
                for strip in strips(code, outer, n, inner):
                    _across(node, strip, name, n, inner)
                return
            if inner == 1 and n >= 4 * LANES and outer:
                for strip in row_strip(code, outer, n):
                    _along(node, strip, name, n)
                return
        _one_by_one(node, name, n, inner, outer)

    return write


def _is_last(node: KeptNode) -> bool:
    return bool(node.get("select_last_index", 0))


def _better(node: KeptNode, name: str, value: Scalar, best: Scalar) -> Scalar:
    """Whether a value further on takes the place of the best so far."""
    if not is_float(value.element):
        return value.call(name + ("e" if _is_last(node) else "t"), best)
    other = "l" if name == "g" else "g"
    worse = value.call(other + ("t" if _is_last(node) else "e"), best)
    return ~(worse | best.is_nan())  # a value that is NaN is not worse


def _one_by_one(node: KeptNode, name: str, n: int, inner: int, outer: int) -> None:
    x, y, code = node[0], node.result, node.code
    with code.stage(outer * inner) as item:
        first = item // inner * (n * inner) + item % inner
        best, at = code.cell(x[first]), code.cell(code.number(0))
        with code.loop(1, n) as k:
            value: Scalar = x[first + k * inner]
            with code.when(_better(node, name, value, best.value)):
                best.value = value
                at.value = k
        y[item] = at.value


def _step(
    node: KeptNode, name: str, value: Scalar, kept: tuple[Scalar, Scalar, Scalar]
) -> tuple[Scalar, Scalar]:
    """The best value and its position, after one more."""
    best, at, here = kept
    better = _better(node, name, value, best)
    return node.code.select(better, value, best), node.code.select(better, here, at)


def _across(node: KeptNode, strip: Strip, name: str, n: int, inner: int) -> None:
    """Positions of neighbours, side by side."""
    x, y, code = node[0], node.result, node.code
    best, at = strip.local(x.element), strip.local(i32)

    def first(lane: Lane) -> None:
        lane.put(best, lane.read(x))
        lane.put(at, code.number(0, i32))

    strip.each(first)

    def step(lane: Lane, loop: ForOp) -> None:
        here = _number(node, loop, 1, 1)
        kept = lane.get(best), lane.get(at), here
        value, position = _step(node, name, lane.read(x, (ALONG + 1) * inner), kept)
        lane.put(best, value)
        lane.put(at, position)

    if n > 1:
        strip.along(n - 1, step)
    strip.each(lambda lane: lane.write_across(y, lane.get(at).to(y.element)))


def _along(node: KeptNode, strip: Strip, name: str, n: int) -> None:
    """Lanes go along a row in steps of a strip; the last step overlaps the one before."""
    x, y, code = node[0], node.result, node.code
    width = strip.vectors * LANES
    best, at = strip.local(x.element), strip.local(i32)

    def first(lane: Lane) -> None:
        lane.put(best, lane.read(x))
        lane.put(at, code.number(0, i32))

    strip.each(first)

    def step(lane: Lane, loop: ForOp) -> None:
        kept = lane.get(best), lane.get(at), _number(node, loop, width, width)
        value, position = _step(node, name, lane.read(x, (ALONG + 1) * width), kept)
        lane.put(best, value)
        lane.put(at, position)

    strip.along(n // width - 1, step)
    values, places = code.array(x.element, width), code.array(i32, width)

    def last(lane: Lane) -> None:
        value, position = lane.get(best), lane.get(at)
        if n % width:
            kept = value, position, code.number(n - width, i32)
            value, position = _step(node, name, lane.read(x, Index(n - width)), kept)
        lane.spill(values, value)
        lane.spill(places, position)

    strip.each(last)
    y[strip.row] = _best_of(node, name, values, places)


def _best_of(node: KeptNode, name: str, values: NestBuffer, places: NestBuffer) -> Scalar:
    """The position of the best of all lanes, each of which has its own first or last."""
    code, last = node.code, _is_last(node)
    best, at = code.cell(values[0]), code.cell(places[0].place())
    with code.loop(1, values.size) as lane:
        value, position = values[lane], places[lane].place() + lane
        here = position > at.value if last else position < at.value
        better = value.call(name + "t", best.value) | (value.equals(best.value) & here)
        if is_float(value.element):
            first = ~best.value.is_nan() | (position < at.value)
            better = better | (value.is_nan() & first)
        with code.when(better):
            best.value = value
            at.value = position
    return at.value


def _number(node: KeptNode, loop: ForOp, step: int, first: int) -> Scalar:
    """A position, of the first lane."""
    index = IndexOp([loop.iterator], Index.iterator(0) * step + first)
    node.code.add(index)
    return Scalar(node.code, index.result, i64).to(i32)


WRITERS = {"ArgMax": arg_extremum("g"), "ArgMin": arg_extremum("l")}
