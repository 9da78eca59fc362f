"""Windows along the lanes of a vector: several vectors of points share one read of a row.

A maximum over 3x3 at stride 2 reads each place of a row for one or two taps, and for each tap loads
the range again to pick its elements. If it is reduced across rows first, the range is loaded once,
in whole consecutive vectors; only the totals are picked apart, tap by tap:

    max over (r, s) of x[2h + r, 2w + s]   is   max over s of v[2w + s],
                                          v[k]  =  max over r of x[2h + r, k]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from ....dialects.index import Index as Affine
from ..emit.access import MOST_LOADS, Point, Vector, emit_index
from ..emit.emitter import Emitter
from ..emit.types import Value
from .nest import Buffers, NestOperand, ScopePlan, access

# Taps along the lanes, each of which is a shuffle or two.
MOST_TAPS = 16


@dataclass(frozen=True)
class LaneWindow:
    """The access of a scope's one read along the lanes.

    Attributes:
        across: the scope without the summations along the lanes: at place `iterator` of the row.
        first: the place that the first lane reads at the first tap.
        step: places between neighbouring lanes.
        taps: places between the first tap and each tap.
        size: places in a row.
    """

    across: ScopePlan
    iterator: int
    first: Affine
    step: int
    taps: tuple[int, ...]
    size: int

    @property
    def beside(self) -> int:
        """Vectors of points to compute together: two if they read common places.

        Measured: four would be faster out of the caches, and slower from memory.
        """
        overlap = max(self.taps) - min(self.taps) >= abs(self.step)
        return 2 if overlap else 1

    def offsets(self, points: int) -> list[list[int]]:
        """Places that this many neighbouring points read for each tap, the least of which is 0."""
        read = [[self.step * k + tap for k in range(points)] for tap in self.taps]
        least = min(map(min, read))
        return [[place - least for place in places] for places in read]

    def starts(self, points: int, lanes: int) -> list[int]:
        """Start places of vectors that cover all of these places, and nothing behind them."""
        span = max(map(max, self.offsets(points))) + 1
        return [0] if span <= lanes else [*range(0, span - lanes, lanes), span - lanes]

    def at(self, b: Emitter, point: Point, points: int, start: int) -> Point:
        """The point, and the vector that starts `start` places behind the least place read."""
        vector = point.vector
        assert vector is not None
        read = [self.step * k + tap for k in (0, points - 1) for tap in self.taps]
        place = b.add(emit_index(b, self.first, point), min(read) + start)
        real = max(read) - min(read) + 1
        mask = real if real < vector.lanes else None
        along = Vector(self.iterator, vector.lanes, mask)
        return Point((*point.extents, self.size), {**point.values, self.iterator: place}, along)

    def pick(self, b: Emitter, totals: Sequence[Value], points: int) -> list[list[Value]]:
        """The elements of each vector of points for each tap, from the totals at `starts`."""
        lanes = totals[0].type.lanes
        starts = self.starts(points, lanes)
        found: list[list[Value]] = []
        for first in range(0, points, lanes):
            taps = (read[first : first + lanes] for read in self.offsets(points))
            found.append([_picked(b, totals, starts, read) for read in taps])
        return found


def _picked(
    b: Emitter, vectors: Sequence[Value], starts: Sequence[int], places: Sequence[int]
) -> Value:
    """The elements at places of a row, from vectors that start at `starts`."""
    lanes = vectors[0].type.lanes
    held = [min(place // lanes, len(starts) - 1) for place in places]
    lane = [k * lanes + place - starts[k] for k, place in zip(held, places, strict=True)]
    return b.pick(vectors, [*lane, *[lane[0]] * (lanes - len(places))])


def window_of(scope: ScopePlan, buffers: Buffers, point: Point) -> LaneWindow | None:
    """The scope's window along the lanes; None if it has none, or has bounds to check."""
    if point.vector is None or len(scope.reads) != 1:
        return None
    vector, (operand,) = point.vector.iterator, scope.reads
    if operand.source not in buffers.pointers or operand in buffers.ready:
        return None
    found = access(operand, buffers, point.extents)
    dims = [d for d, e in enumerate(operand.index) if vector in e.iterators]
    if found.pointer is None or found.guards or found.flat.has_floor:
        return None
    if len(dims) != 1:
        return None
    index = operand.index[dims[0]]
    step = index.coefficient(vector)
    along = [k for k in scope.sums if k in index.iterators]
    if not along or found.flat.coefficient(vector) != step:
        return None
    beside = (k for d, e in enumerate(operand.index) if d != dims[0] for k in e.iterators)
    if set(along) & set(beside):  # a diagonal: the taps of a row lie in several rows
        return None
    extents = [range(point.extents[k]) for k in along]
    taps = tuple(
        sum(index.coefficient(k) * n for k, n in zip(along, place, strict=True))
        for place in product(*extents)
    )
    if len(taps) > MOST_TAPS or abs(step) + max(map(abs, taps)) // 4 >= MOST_LOADS:
        return None
    across, iterator, size = _across(scope, operand, dims[0], along, buffers, point)
    first = index - sum((Affine.iterator(k) * index.coefficient(k) for k in along), Affine(0))
    return LaneWindow(across, iterator, first, step, taps, size)


def _across(
    scope: ScopePlan,
    operand: NestOperand,
    dim: int,
    along: Sequence[int],
    buffers: Buffers,
    point: Point,
) -> tuple[ScopePlan, int, int]:
    """The scope without its summations along a row, the row's iterator, and the row's size."""
    iterator = len(point.extents)
    index = (*operand.index[:dim], Affine.iterator(iterator), *operand.index[dim + 1 :])
    checked = operand.checked
    if checked is not None:
        checked = tuple(d for d in checked if d != dim)
    moved = NestOperand(operand.source, index, operand.outside, checked)
    sums = tuple(k for k in scope.sums if k not in along)
    size = buffers.types[operand.source].get_shape()[dim]
    return replace(scope, sums=sums, reads=(moved,)), iterator, size
