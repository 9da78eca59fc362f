"""Emit one scope of a nest: its body, and the loops over its summations, for several points.

Totals are one vector a point. Those of a maximum along the lanes may be two, on processors where
one that keeps NaN takes three instructions: the plain one, which loses some NaN, and a sum of all
values, which is NaN if one of them is. Where that sum is NaN (or infinities cancelled in it) the
scope is computed again, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from xdsl.ir import Block

from ....dialects.types import byte_size, tensor_type
from ..emit.access import Point, Vector, compute_type, emit_index, read, rounded
from ..emit.emitter import Emitter
from ..emit.scalar_code import HORIZONTAL, combine, emit_body, identity
from ..emit.types import Index, Type, Value, constant
from .nest import Buffers, NestOperand, Part, ScopePlan, access
from .nontemporal import LEAST_BYTES_OF_LOOPS

# A window of this many taps or fewer is written out: addresses and bounds then fold.
UNROLLED = 9
# Partial results that a reduction keeps, for an addition to start in every cycle.
CHAINS = 8
# Bodies written out in a loop over a summation.
MOST_BODIES = 32
# Values of a maximum from which on a check of their sum costs less than keeping NaN.
LEAST_CHECKED = 4

Places = Sequence[tuple[Buffers, Point]]


@dataclass(frozen=True)
class _Reduction:
    """How values become totals: one for each place; if `checked`, one and the sum to check."""

    kind: str
    checked: bool = False

    def start(self, dtype: Type, places: int) -> list[Value]:
        totals = [identity(self.kind, dtype)] * places
        return [*totals, constant(dtype, 0)] if self.checked else totals

    def step(self, b: Emitter, totals: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        """Totals with one more value at each place."""
        made = [self.combine(b, t, v) for t, v in zip(totals, values, strict=False)]
        if not self.checked:
            return made
        (value,) = values
        return [*made, self.sum(b, totals[-1], value)]

    def join(self, b: Emitter, xs: Sequence[Value], ys: Sequence[Value]) -> list[Value]:
        """Totals of both."""
        made = [self.combine(b, x, y) for x, y in zip(xs, ys, strict=True)]
        return [*made[:-1], self.sum(b, xs[-1], ys[-1])] if self.checked else made

    def sum(self, b: Emitter, x: Value, y: Value) -> Value:
        """Add to the check."""
        with b.flags("nsz"):
            return b.add(x, y)

    def combine(self, b: Emitter, x: Value, y: Value) -> Value:
        if not self.checked:
            return combine(b, self.kind, x, y)
        return b.select(b.compare("gt" if self.kind == "max" else "lt", x, y), x, y)


def emit_scope(b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point) -> Value:
    """The scope's value at a point (or in the lanes of its vector): loops over the summations."""
    return emit_scopes(b, scope, [(buffers, point)])[0]


def emit_scopes(b: Emitter, scope: ScopePlan, places: Places) -> list[Value]:
    """The scope's values at several points, which share the loops over the summations."""
    element = tensor_type(scope.op.result).element_type
    return [rounded(b, x, element) for x in _unrounded(b, scope, places)]


def _unrounded(b: Emitter, scope: ScopePlan, places: Places) -> list[Value]:
    """The values before a tensor is made of them."""
    if not scope.sums:
        return [_body(b, scope, *place) for place in places]
    reduction = _Reduction(scope.reduction)
    totals = reduction.start(_dtype(scope).vector(places[0][1].lanes), len(places))
    return _sum(b, scope, reduction, places, list(scope.sums), totals)


def fetch_ahead(b: Emitter, scope: ScopePlan, places: Places) -> None:
    """Ask for what these places read when the loop is further by `Buffers.ahead`.

    Rows of some KiB are too short for the processor to find out by itself where they go on.
    """
    iterator, step = places[0][0].ahead
    asked: set[str] = set()
    for buffers, point in places if step else ():
        there = point.at({iterator: b.add(point.values[iterator], step)})
        for operand in scope.reads:
            moves = any(iterator in e.iterators for e in operand.index)
            if not moves or operand.source not in buffers.pointers:
                continue
            found = access(operand, buffers, point.extents)
            assert found.pointer is not None
            for taps in product(*(range(point.extents[k]) for k in scope.sums)):
                at = there.at(dict(zip(scope.sums, taps, strict=True)))
                place = emit_index(b, found.flat, at)
                if str(place) not in asked:
                    asked.add(str(place))
                    b.prefetch(found.memory, found.pointer, place)


def _is_optimistic(scope: ScopePlan, place: tuple[Buffers, Point]) -> bool:
    """Whether the scope is a maximum or minimum of enough floats, without bounds to check."""
    buffers, point = place
    if not buffers.optimistic or scope.reduction not in ("max", "min"):
        return False
    count = math.prod(point.extents[k] for k in scope.sums)
    if count < LEAST_CHECKED or not _dtype(scope).is_float:
        return False
    reads = (r for r in scope.reads if r not in buffers.ready and r.source not in buffers.values)
    return not any(access(r, buffers, point.extents).guards for r in reads)


def is_from_memory(scope: ScopePlan, buffers: Buffers) -> bool:
    """Whether a read is of more than caches hold: rows then wait for each other's check.

    Measured on rows of 256: a maximum from memory has 60 % of a copy's speed with the check, 87 %
    without, from the third-level cache 110 % with and 70 % without.
    """
    return _reads_at_least(LEAST_BYTES_OF_LOOPS, scope, buffers)


def _reads_at_least(least: int, scope: ScopePlan, buffers: Buffers) -> bool:
    types = (buffers.types[r.source] for r in scope.reads if r.source in buffers.types)
    return any(byte_size(t) >= least for t in types)


def any_nan(b: Emitter, x: Value) -> Value:
    """Whether x, or any lane of it, is NaN."""
    found = b.compare("ne", x, x)
    return b.reduce("or", found) if x.type.lanes else found


def _sum(
    b: Emitter,
    scope: ScopePlan,
    reduction: _Reduction,
    places: Places,
    sums: list[int],
    totals: Sequence[Value],
) -> list[Value]:
    """Reduce over `sums`, outermost first, going on from `totals`."""
    extents = [places[0][1].extents[k] for k in sums]
    if math.prod(extents) <= UNROLLED:
        return _unrolled(b, scope, reduction, places, sums, totals)
    iterator, *rest = sums
    inside = math.prod(extents[1:])
    chains = max(1, min(CHAINS // len(places), MOST_BODIES // inside, extents[0]))
    whole = extents[0] - extents[0] % chains
    neutral = reduction.start(totals[0].type, len(places))
    count = len(neutral)
    with b.fold(0, whole, [*totals, *neutral * (chains - 1)], chains) as loop:
        made: list[Value] = []
        for k in range(chains):
            inner = _at(places, {iterator: b.add(loop.index, k)})
            now = loop.values[k * count : (k + 1) * count]
            made += _sum(b, scope, reduction, inner, rest, now)
        loop.next(made)
    totals = _joined(b, reduction, loop.results, count)
    for step in range(whole, extents[0]):
        totals = _sum(b, scope, reduction, _at(places, {iterator: step}), rest, totals)
    return list(totals)


def _unrolled(
    b: Emitter,
    scope: ScopePlan,
    reduction: _Reduction,
    places: Places,
    sums: list[int],
    totals: Sequence[Value],
) -> list[Value]:
    """Reduce over `sums` without loops, the outermost last.

    Windows that overlap then have whole rows in common, which LLVM computes once.
    """
    if not sums:
        return reduction.step(b, totals, [_body(b, scope, *place) for place in places])
    iterator, *rest = sums
    for step in range(places[0][1].extents[iterator]):
        at = _at(places, {iterator: step})
        if len(rest) == 0:
            totals = _unrolled(b, scope, reduction, at, [], totals)
            continue
        neutral = reduction.start(totals[0].type, len(places))
        totals = reduction.join(b, totals, _unrolled(b, scope, reduction, at, rest, neutral))
    return list(totals)


def _at(places: Places, values: Mapping[int, Index]) -> list[tuple[Buffers, Point]]:
    return [(buffers, point.at(values)) for buffers, point in places]


def _joined(b: Emitter, reduction: _Reduction, totals: Sequence[Value], count: int) -> list[Value]:
    """Combine chains, of `count` totals each, by halves."""
    chains = [list(totals[k : k + count]) for k in range(0, len(totals), count)]
    while len(chains) > 1:
        half = len(chains) // 2
        pairs = zip(chains[:half], chains[half : 2 * half], strict=True)
        chains = [reduction.join(b, x, y) for x, y in pairs] + chains[2 * half :]
    return chains[0]


def _dtype(scope: ScopePlan) -> Type:
    return compute_type(tensor_type(scope.op.result).element_type)


def _body(b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point) -> Value:
    reads = [_argument(b, operand, buffers, point) for operand in scope.reads]

    def emit(block: Block, parts: Sequence[Part], summed: bool = False) -> Value:
        made = [reads[p] if isinstance(p, int) else emit(p.block, p.parts) for p in parts]
        return emit_body(b, block, made, point.lanes, summed=summed)

    return emit(scope.op.body.block, scope.parts, scope.op.is_sum)


def _argument(b: Emitter, operand: NestOperand, buffers: Buffers, point: Point) -> Value:
    if operand in buffers.ready:
        return buffers.ready[operand]
    if operand.source in buffers.held:
        return buffers.held[operand.source].read(b, operand, point)
    made = buffers.values.get(operand.source)
    if made is not None:
        return made if made.type.lanes == point.lanes else b.broadcast(made, point.lanes)
    return read(b, access(operand, buffers, point.extents), point)


def emit_horizontal(
    b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point, iterator: int, lanes: int
) -> Value:
    """A reduction with one summation in the lanes: partial results, combined at the end."""
    total = _horizontal(b, scope, buffers, point, iterator, lanes)
    return rounded(b, total, tensor_type(scope.op.result).element_type)


def _horizontal(
    b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point, iterator: int, lanes: int
) -> Value:
    outer = [k for k in scope.sums if k != iterator]
    along = Vector(iterator, lanes, aligned=True)
    dtype = _dtype(scope).vector(lanes)

    def reduce(reduction: _Reduction) -> list[Value]:
        start = reduction.start(dtype, 1)
        return _partial(b, scope, reduction, (buffers, point), outer, along, start)

    def exact() -> list[Value]:
        (total,) = reduce(_Reduction(scope.reduction))
        return [b.reduce(HORIZONTAL[scope.reduction], total)]

    if is_from_memory(scope, buffers) or not _is_optimistic(scope, (buffers, point)):
        return exact()[0]
    total, check = reduce(_Reduction(scope.reduction, checked=True))
    plain = _Reduction(scope.reduction, checked=True)
    return b.if_else(any_nan(b, check), exact, lambda: [_across(b, plain, total)])[0]


def _across(b: Emitter, reduction: _Reduction, total: Value) -> Value:
    """Combine the lanes, by halves."""
    while total.type.lanes > 1:
        half = total.type.lanes // 2
        lower, upper = (b.shuffle(total, range(k, k + half)) for k in (0, half))
        total = reduction.combine(b, lower, upper)
    return b.extract(total, 0)


def _partial(
    b: Emitter,
    scope: ScopePlan,
    reduction: _Reduction,
    place: tuple[Buffers, Point],
    outer: list[int],
    along: Vector,
    totals: list[Value],
) -> list[Value]:
    buffers, point = place
    if outer:
        with b.fold(0, point.extents[outer[0]], totals) as loop:
            inner = (buffers, point.at({outer[0]: loop.index}))
            loop.next(_partial(b, scope, reduction, inner, outer[1:], along, loop.values))
        return loop.results
    extent, lanes = point.extents[along.iterator], along.lanes
    whole = extent - extent % lanes
    start = 0
    for chains in (CHAINS, 1):
        stop = start + (whole - start) // (chains * lanes) * chains * lanes
        if start < stop:
            bounds = (start, stop)
            totals = _chained(b, scope, reduction, place, along, bounds, chains, totals)
            start = stop
    if whole < extent:
        inner = point.at({along.iterator: whole}, replace(along, mask=extent - whole))
        value = _body(b, scope, buffers, inner)
        mask = b.mask(extent - whole, lanes)
        assert mask is not None
        value = b.select(mask, value, identity(scope.reduction, value.type))
        totals = reduction.step(b, totals, [value])
    return totals


def _chained(
    b: Emitter,
    scope: ScopePlan,
    reduction: _Reduction,
    place: tuple[Buffers, Point],
    along: Vector,
    bounds: tuple[int, int],
    chains: int,
    totals: Sequence[Value],
) -> list[Value]:
    """Reduce whole vectors into several totals that do not wait for each other."""
    buffers, point = place
    neutral = reduction.start(totals[0].type, 1)
    count = len(neutral)
    starts = [*totals, *neutral * (chains - 1)]
    # Unrolled, LLVM would make one chain of them again.
    with b.fold(*bounds, starts, chains * along.lanes, unroll=1) as loop:
        made: list[Value] = []
        for k in range(chains):
            index = b.add(loop.index, k * along.lanes)
            value = _body(b, scope, buffers, point.at({along.iterator: index}, along))
            made += reduction.step(b, loop.values[k * count : (k + 1) * count], [value])
        loop.next(made)
    return _joined(b, reduction, loop.results, count)
