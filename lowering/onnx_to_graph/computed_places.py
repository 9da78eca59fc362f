"""Slices, repeats and pads where data decide between which places, how often and how wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import element_of, shape_of
from .computed_sizes import (
    bounded_size,
    element_ranges,
    known_ints,
    open_places,
    rounded_up,
    two_dims,
)
from .padded import PaddedDim, Reading, Ready
from .padded_ops import Handler

# --- slices ---


def _slice(reading: Reading) -> Ready | None:
    """Along one dim between computed places, or of rows that data count."""
    node, rows = reading.node, reading.given.get(0)
    if node.version < 10:
        if rows is not None:
            raise reading.unfit()
        return None
    if set(reading.given) - {0}:
        raise reading.unfit()
    computed = [element_ranges(reading, k) for k in (1, 2)]
    if rows is None and computed == [None, None]:
        return None
    ends = [
        c or [(n, n) for n in node.constant_ints(1 + k, "the bounds")]
        for k, c in enumerate(computed)
    ]
    number = len(ends[0])
    axes = node.constant_ints(3, "axes") if node.has(3) else list(range(number))
    steps = node.constant_ints(4, "steps") if node.has(4) else [1] * number
    axes = [node.axis(a, reading.rank(0)) for a in axes]

    def whole(axis: int, j: int) -> bool:
        first, (last, _) = ends[0][j], ends[1][j]
        return first == (0, 0) and last >= node.shape(0)[axis] and steps[j] == 1

    moving = [
        j
        for j, axis in enumerate(axes)
        if any(low != high for low, high in (ends[0][j], ends[1][j]))
        or (rows is not None and axis == rows.dim and not whole(axis, j))
    ]
    if not moving:
        fixed = {1 + k: known_ints([low for low, _ in ends[k]]) for k in (0, 1)}
        return Ready(reading.with_operands(fixed), dims=[rows])
    (j, *more) = moving
    if more or (rows is not None and rows.dim != axes[j]):
        raise two_dims(reading)
    others = [k for k in range(number) if k != j]
    x = node[0]
    for k in others:
        x = _fixed(reading, x, axes[k], ends[0][k][0], ends[1][k][0], steps[k])
    x, found = _cut(reading, x, axes[j], [ends[0][j], ends[1][j]], j, steps[j])
    return Ready(results=[x], dims=[found])


def _fixed(reading: Reading, x: SSAValue, axis: int, start: int, end: int, step: int) -> SSAValue:
    """A slice along one dim between known places."""
    shape = shape_of(x)
    places = range(shape[axis])[slice(start, end if end >= -shape[axis] else None, step)]
    rank = range(len(shape))
    return reading.build.slice(
        x,
        starts=[places.start if k == axis and places else 0 for k in rank],
        sizes=[len(places) if k == axis else shape[k] for k in rank],
        steps=[step if k == axis else 1 for k in rank],
    )


def _cut(
    reading: Reading,
    x: SSAValue,
    axis: int,
    ends: Sequence[tuple[int, int]],
    j: int,
    step: int,
) -> tuple[SSAValue, PaddedDim]:
    """Rows between two computed places of a dim, and how many there are."""
    node, build, size = reading.node, reading.build, shape_of(x)[axis]
    count = reading.given[0].count if 0 in reading.given else reading.number(size)
    zero, one = reading.number(0), reading.number(1)
    if step == 0:
        raise UserError("a step is 0", where=node.where)
    last = count if step > 0 else build.sub(count, one)
    clipped: list[SSAValue] = []
    for k, (low, high) in enumerate(ends):
        if low == high:
            at = reading.number(min(max(low, -(1 << 40)), 1 << 40))
        else:
            at = reading.whole(1 + k, j)
        if high < 0:
            at = build.add(at, count)
        elif low < 0:
            at = build.where(build.less(at, zero), build.add(at, count), at)
        least_place = reading.number(-1) if step < 0 and k == 1 else zero
        clipped.append(build.min(build.max(at, least_place), last))
    start, end = clipped
    apart = build.sub(end, start) if step > 0 else build.sub(start, end)
    most = size
    if step > 0 and ends[0][0] >= 0 and ends[1][0] >= 0:
        most = min(size, ends[1][1]) - min(size, ends[0][0])
    rows = -(-max(most, 0) // abs(step))
    found = PaddedDim(axis, rounded_up(reading, apart, abs(step)))
    steps = node.data(np.arange(rows, dtype=np.int64) * step, "steps")
    places = build.add(build.expand(start, [rows]), steps)
    top = build.expand(reading.number(max(size - 1, 0)), [rows])
    places = build.max(build.min(places, top), build.expand(zero, [rows]))
    return build.gather(x, places, axis=axis), found


# --- repeats and pads ---


def _tile(reading: Reading) -> Ready | None:
    node, rows = reading.node, reading.given.get(0)
    if set(reading.given) - {0}:
        raise reading.unfit()
    ends = element_ranges(reading, 1) if node.version >= 6 else None
    repeats = [high for _, high in ends] if ends else node.constant_ints(1, "repeats")
    unknown = open_places(ends) if ends else []
    if rows is not None:
        if unknown or repeats[rows.dim] != 1:
            raise reading.unfit()
        return Ready(node, dims=[rows])
    if not unknown:
        return Ready(reading.with_operands({1: known_ints(repeats)}), dims=[None]) if ends else None
    (dim, *more) = unknown
    if more:
        raise two_dims(reading)
    size = node.shape(0)[dim]
    bounded_size(reading, repeats[dim] * size)
    count = reading.build.mul(reading.whole(1, dim), reading.number(size))
    repeats[dim] = max(repeats[dim], 0)
    return Ready(reading.with_operands({1: known_ints(repeats)}), dims=[PaddedDim(dim, count)])


def _pad(reading: Reading) -> Ready | None:
    """With a number, along one dim that data count or pad."""
    node, build, rows = reading.node, reading.build, reading.given.get(0)
    if set(reading.given) - {0}:
        raise reading.unfit()
    ends = element_ranges(reading, 1) if node.version >= 11 else None
    if ends is None and rows is None:
        return None
    rank = reading.rank(0)
    known = ends or [(n, n) for n in _given_pads(reading)]
    axes = node.constant_ints(3, "axes") if node.has(3) else list(range(rank))
    axes = [node.axis(a, rank) for a in axes]
    moving = {axes[k % len(axes)] for k in open_places(known)}
    moving |= {rows.dim} if rows is not None else set()
    if len(moving) != 1:
        raise two_dims(reading)
    (dim,) = moving
    j = axes.index(dim) if dim in axes else None
    pair = [(0, 0), (0, 0)] if j is None else [known[j], known[j + len(axes)]]
    if pair == [(0, 0), (0, 0)]:
        return Ready(node, dims=[rows])
    if (
        node.string("mode", "constant") != "constant"
        or min(low for low, _ in pair) < 0
        or j is None
    ):
        raise reading.unfit() if rows is not None else two_dims(reading)
    others = [0 if axes[k % len(axes)] == dim else low for k, (low, _) in enumerate(known)]
    before, after = (
        reading.number(low) if low == high else reading.whole(1, j + k * len(axes))
        for k, (low, high) in enumerate(pair)
    )
    count = reading.dims(0)[dim]
    own = reading.number(count) if isinstance(count, int) else count
    fill = node[2] if node.has(2) else node.scalar(0, element_of(node[0]))
    size = node.shape(0)[dim]
    total = bounded_size(reading, size + pair[0][1] + pair[1][1])
    places = build.sub(
        node.data(np.arange(total, dtype=np.int64), "places"), build.expand(before, [total])
    )
    zeros = node.literal(0, places)
    inside = build.and_(
        build.greater_equal(places, zeros), build.less(places, build.expand(own, [total]))
    )

    def padded(y: SSAValue) -> SSAValue:
        at = build.max(build.min(places, node.literal(max(size - 1, 0), places)), zeros)
        found = build.gather(y, at, axis=dim)
        shape = shape_of(found)
        column = node.reshape(inside, [total if k == dim else 1 for k in range(rank)])
        other = build.expand(node.reshape(fill, []), shape)
        return build.where(build.expand(column, shape), found, other)

    made = PaddedDim(dim, build.add(build.add(own, before), after))
    return Ready(reading.with_operands({1: known_ints(others)}), dims=[made], finish=padded)


def _given_pads(reading: Reading) -> list[int]:
    node = reading.node
    return node.ints("pads") if node.version < 11 else node.constant_ints(1, "pads")


HANDLERS: Mapping[str, Handler] = {"Pad": _pad, "Slice": _slice, "Tile": _tile}

__all__ = ["HANDLERS"]
