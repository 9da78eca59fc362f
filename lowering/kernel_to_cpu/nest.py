"""A loop nest over fused scopes: its iterators, and every scope's reads in terms of them.

Iterators are numbered: first the loops that all scopes share, then each scope's own traversals and
summations. Extent-1 iterators do not exist here: they are the constant 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.index import Index as Affine
from ...dialects.index import normalise, range_of, row_major_strides
from ...dialects.kernel import layout_of, physical
from ...dialects.scalars import Read
from ...dialects.types import Tensor, tensor_type
from .access import Access, Point, Vector, compute_type, emit_index, read
from .emit import Emitter
from .scalar_code import HORIZONTAL, combine, emit_body, identity
from .types import I64, Index, Type, Value

# A window of this many taps or fewer is written out: addresses and bounds then fold.
UNROLLED = 9
# Partial results that a reduction keeps, for an addition to start in every cycle.
CHAINS = 8
# Bodies written out in a loop over a summation.
MOST_BODIES = 32


@dataclass(frozen=True)
class Operand:
    """Where a read finds its elements: a kernel operand, a scope of the nest, or ones."""

    source: SSAValue
    index: tuple[Affine, ...]
    outside: float
    checked: tuple[int, ...] | None = None
    """Dims whose bounds must be checked, where that is known; None asks for the ranges."""


@dataclass
class ScopePlan:
    """One scope in nest iterators: `own` traversal iterators beyond the shared ones, `sums`."""

    op: ScopeOp
    own: tuple[int, ...]
    sums: tuple[int, ...]
    reads: tuple[Operand, ...]
    here: tuple[Affine, ...]

    @property
    def reduction(self) -> str:
        return self.op.reduction.data


@dataclass
class NestPlan:
    """All scopes of a kernel over one numbering of iterators; the first `shared` are common."""

    shared: int
    extents: tuple[int, ...]
    scopes: list[ScopePlan] = field(default_factory=list[ScopePlan])

    @property
    def root(self) -> ScopePlan:
        return self.scopes[-1]


def plan_nest(scopes: Sequence[ScopeOp], shared: int) -> NestPlan:
    """Number the iterators of scopes that share their first `shared` loops."""
    extents = [n for n in scopes[-1].traversal if n != 1][:shared]
    numbered: list[tuple[ScopeOp, list[Affine], tuple[int, ...], tuple[int, ...]]] = []
    for scope in scopes:
        images: list[Affine] = []
        own: list[int] = []
        sums: list[int] = []
        loops = 0
        for k, n in enumerate(scope.extents):
            if n == 1:
                images.append(Affine(0))
                continue
            if k < len(scope.traversal) and loops < shared:
                images.append(Affine.iterator(loops))
                loops += 1
                continue
            (own if k < len(scope.traversal) else sums).append(len(extents))
            images.append(Affine.iterator(len(extents)))
            extents.append(n)
        numbered.append((scope, images, tuple(own), tuple(sums)))
    plan = NestPlan(shared, tuple(extents))
    for scope, image, inside, summed in numbered:
        reads = tuple(_operand(r, image, plan.extents) for r in scope.reads())
        here = tuple(image[: len(scope.traversal)])
        plan.scopes.append(ScopePlan(scope, inside, summed, reads, here))
    return plan


def _operand(read_: Read, images: Sequence[Affine], extents: tuple[int, ...]) -> Operand:
    index = tuple(normalise(e.substitute(images), extents) for e in read_.index)
    return Operand(read_.source, index, read_.outside)


def guards_of(
    index: Sequence[Affine],
    shape: Sequence[int],
    extents: tuple[int, ...],
    type_: Tensor | None,
    outside: float,
) -> tuple[tuple[Affine, int], ...]:
    """The bounds a read must check: none where the range, or the zero halo, makes it safe."""
    halo = layout_of(type_).halo if type_ is not None and outside == 0.0 else [(0, 0)] * len(shape)
    needed: list[tuple[Affine, int]] = []
    for e, size, (low, high) in zip(index, shape, halo, strict=True):
        first, last = range_of(e, extents)
        if first < -low or last >= size + high:
            needed.append((e, size))
    return tuple(needed)


@dataclass
class Buffers:
    """Pointers and physical types of a kernel's operands, local rows, and finished scalars."""

    pointers: Mapping[SSAValue, Value]
    types: Mapping[SSAValue, Tensor]
    rows: dict[SSAValue, tuple[Value, ScopePlan]] = field(
        default_factory=dict[SSAValue, tuple[Value, ScopePlan]]
    )
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    ready: Mapping[Operand, Value] = field(default_factory=dict[Operand, Value])
    """What operands read at the point, where that is known before its scopes are emitted."""
    lanes: int = -1
    interior: bool = False
    """Whether the point is known to be where bounds that no lane decides hold: `interior_at`."""


def interior_at(
    b: Emitter, plan: NestPlan, buffers: Buffers, point: Point, lanes: int
) -> Value | None:
    """Whether every bound that iterator `lanes` has no part in holds for all summations at a point.

    None where there is no such bound, or one is no linear expression of its iterators.
    """
    condition: Value | None = None
    for scope in plan.scopes:
        for operand in scope.reads:
            if operand.source in buffers.rows or operand.source not in buffers.types:
                continue
            for index, size in access(operand, buffers, plan.extents).guards:
                if lanes in index.iterators or index.has_floor:
                    continue
                sums = [k for k in index.iterators if k in scope.sums]
                reach = [index.coefficient(k) * (plan.extents[k] - 1) for k in sums]
                at = point.at(dict.fromkeys(sums, 0))
                low = b.value(emit_index(b, index + sum(min(r, 0) for r in reach), at), I64)
                high = b.value(emit_index(b, index + sum(max(r, 0) for r in reach), at), I64)
                inside = b.logic("and", b.compare("ge", low, 0), b.compare("lt", high, size))
                condition = inside if condition is None else b.logic("and", condition, inside)
    return condition


def access(operand: Operand, buffers: Buffers, extents: tuple[int, ...]) -> Access:
    """The memory access of one read."""
    source = operand.source
    logical = tensor_type(source)
    if source in buffers.rows:
        pointer, made = buffers.rows[source]
        return _row_access(operand, pointer, made, extents)
    if isinstance(source.owner, OnesOp):
        guards = guards_of(operand.index, logical.get_shape(), extents, None, 1.0)
        return Access(None, logical.element_type, Affine(0), guards)
    type_ = buffers.types[source]
    strides, offset, _ = physical(type_)
    flat = Affine(offset)
    for e, stride in zip(operand.index, strides, strict=True):
        flat += e * stride
    if operand.checked is None:
        guards = guards_of(operand.index, type_.get_shape(), extents, type_, operand.outside)
    else:
        guards = tuple((operand.index[d], type_.get_shape()[d]) for d in operand.checked)
    if buffers.interior:
        guards = tuple(g for g in guards if g[0].has_floor or buffers.lanes in g[0].iterators)
    return Access(buffers.pointers[source], type_.element_type, flat, guards, operand.outside)


def _row_access(
    operand: Operand, pointer: Value, made: ScopePlan, extents: tuple[int, ...]
) -> Access:
    """A read of a row of intermediate values: only its own loops address it."""
    shape = tensor_type(operand.source).get_shape()
    own = [d for d, e in enumerate(made.here) if e.iterators & set(made.own)]
    flat = Affine(0)
    for d, stride in zip(own, row_major_strides([shape[d] for d in own]), strict=True):
        flat += operand.index[d] * stride
    guards = guards_of(
        [operand.index[d] for d in own], [shape[d] for d in own], extents, None, operand.outside
    )
    element = tensor_type(operand.source).element_type
    return Access(pointer, element, flat, guards, operand.outside)


def emit_scope(b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point) -> Value:
    """The scope's value at a point (or in the lanes of its vector): loops over the summations."""
    return emit_scopes(b, scope, [(buffers, point)])[0]


def emit_scopes(
    b: Emitter, scope: ScopePlan, places: Sequence[tuple[Buffers, Point]]
) -> list[Value]:
    """The scope's values at several points, which share the loops over the summations."""
    if not scope.sums:
        return [_body(b, scope, *place) for place in places]
    totals = [identity(scope.reduction, _dtype(scope).vector(p.lanes)) for _, p in places]
    return _sum(b, scope, places, list(scope.sums), totals)


def _sum(
    b: Emitter,
    scope: ScopePlan,
    places: Sequence[tuple[Buffers, Point]],
    sums: list[int],
    totals: list[Value],
) -> list[Value]:
    """Reduce over `sums`, outermost first, going on from `totals`."""
    extents = [places[0][1].extents[k] for k in sums]
    if math.prod(extents) <= UNROLLED:
        return _unrolled(b, scope, places, sums, totals)
    iterator, *rest = sums
    inside = math.prod(extents[1:])
    chains = max(1, min(CHAINS // len(places), MOST_BODIES // inside, extents[0]))
    whole = extents[0] - extents[0] % chains
    neutral = [identity(scope.reduction, total.type) for total in totals]
    with b.fold(0, whole, totals + neutral * (chains - 1), chains) as loop:
        made: list[Value] = []
        for k in range(chains):
            inner = _at(places, {iterator: b.add(loop.index, k)})
            now = loop.values[k * len(places) : (k + 1) * len(places)]
            made += _sum(b, scope, inner, rest, now)
        loop.next(made)
    totals = _joined(b, scope, loop.results, len(places))
    for step in range(whole, extents[0]):
        totals = _sum(b, scope, _at(places, {iterator: step}), rest, totals)
    return totals


def _unrolled(
    b: Emitter,
    scope: ScopePlan,
    places: Sequence[tuple[Buffers, Point]],
    sums: list[int],
    totals: Sequence[Value],
) -> list[Value]:
    """Reduce over `sums` without loops, the outermost last.

    Windows that overlap then have whole rows in common, which LLVM computes once.
    """
    if not sums:
        return _step(b, scope, places, totals)
    iterator, *rest = sums
    for step in range(places[0][1].extents[iterator]):
        at = _at(places, {iterator: step})
        if len(rest) == 0:
            totals = _step(b, scope, at, totals)
            continue
        neutral = [identity(scope.reduction, total.type) for total in totals]
        rows = _unrolled(b, scope, at, rest, neutral)
        pairs = zip(totals, rows, strict=True)
        totals = [combine(b, scope.reduction, total, row) for total, row in pairs]
    return list(totals)


def _at(
    places: Sequence[tuple[Buffers, Point]], values: Mapping[int, Index]
) -> list[tuple[Buffers, Point]]:
    return [(buffers, point.at(values)) for buffers, point in places]


def _step(
    b: Emitter, scope: ScopePlan, places: Sequence[tuple[Buffers, Point]], totals: Sequence[Value]
) -> list[Value]:
    """One step of the reduction at every place."""
    return [
        combine(b, scope.reduction, total, _body(b, scope, *place))
        for total, place in zip(totals, places, strict=True)
    ]


def _joined(b: Emitter, scope: ScopePlan, totals: Sequence[Value], count: int) -> list[Value]:
    """Combine chains, of `count` totals each, by halves."""
    joined = list(totals)
    while len(joined) > count:
        half = len(joined) // count // 2 * count
        pairs = zip(joined[:half], joined[half : 2 * half], strict=True)
        joined = [combine(b, scope.reduction, x, y) for x, y in pairs] + joined[2 * half :]
    return joined


def _dtype(scope: ScopePlan) -> Type:
    return compute_type(tensor_type(scope.op.result).element_type)


def _body(b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point) -> Value:
    arguments = [_argument(b, operand, buffers, point) for operand in scope.reads]
    return emit_body(b, scope.op.body.block, arguments, point.lanes)


def _argument(b: Emitter, operand: Operand, buffers: Buffers, point: Point) -> Value:
    if operand in buffers.ready:
        return buffers.ready[operand]
    made = buffers.values.get(operand.source)
    if made is not None:
        return made if made.type.lanes == point.lanes else b.broadcast(made, point.lanes)
    return read(b, access(operand, buffers, point.extents), point)


def emit_horizontal(
    b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point, iterator: int, lanes: int
) -> Value:
    """A reduction with one summation in the lanes: partial results, combined at the end."""
    outer = [k for k in scope.sums if k != iterator]
    start = identity(scope.reduction, _dtype(scope).vector(lanes))
    total = _partial(b, scope, buffers, point, outer, iterator, lanes, start)
    return b.reduce(HORIZONTAL[scope.reduction], total)


def _partial(
    b: Emitter,
    scope: ScopePlan,
    buffers: Buffers,
    point: Point,
    outer: list[int],
    iterator: int,
    lanes: int,
    total: Value,
) -> Value:
    if outer:
        with b.fold(0, point.extents[outer[0]], [total]) as loop:
            inner = point.at({outer[0]: loop.index})
            loop.next(
                [_partial(b, scope, buffers, inner, outer[1:], iterator, lanes, loop.values[0])]
            )
        return loop.results[0]
    extent = point.extents[iterator]
    whole = extent - extent % lanes
    start = 0
    for chains in (CHAINS, 1):
        stop = start + (whole - start) // (chains * lanes) * chains * lanes
        if start < stop:
            total = _chained(
                b, scope, buffers, point, (iterator, lanes), (start, stop), chains, total
            )
            start = stop
    if whole < extent:
        inner = point.at({iterator: whole}, Vector(iterator, lanes, extent - whole, aligned=True))
        value = _body(b, scope, buffers, inner)
        mask = b.mask(extent - whole, lanes)
        assert mask is not None
        value = b.select(mask, value, identity(scope.reduction, value.type))
        total = combine(b, scope.reduction, total, value)
    return total


def _chained(
    b: Emitter,
    scope: ScopePlan,
    buffers: Buffers,
    point: Point,
    vector: tuple[int, int],
    bounds: tuple[int, int],
    chains: int,
    total: Value,
) -> Value:
    """Reduce whole vectors into several totals that do not wait for each other."""
    iterator, lanes = vector
    neutral = identity(scope.reduction, total.type)
    with b.fold(*bounds, [total] + [neutral] * (chains - 1), chains * lanes) as loop:
        made: list[Value] = []
        for k, before in enumerate(loop.values):
            index = b.add(loop.index, k * lanes)
            inner = point.at({iterator: index}, Vector(iterator, lanes, aligned=True))
            made.append(combine(b, scope.reduction, before, _body(b, scope, buffers, inner)))
        loop.next(made)
    return _joined(b, scope, loop.results, 1)[0]
