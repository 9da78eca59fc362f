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
from ...dialects.index import normalise, points, range_of, row_major_strides
from ...dialects.kernel import layout_of, physical
from ...dialects.scalars import Read
from ...dialects.types import Tensor, tensor_type
from .access import Access, Point, Vector, compute_type, emit_index, read
from .emit import Emitter
from .scalar_code import HORIZONTAL, combine, emit_body, identity
from .types import I64, Type, Value

# A window of this many taps or fewer is written out: addresses and bounds then fold.
UNROLLED = 9


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
    if not scope.sums:
        return _body(b, scope, buffers, point)
    return _sum(b, scope, buffers, point, list(scope.sums), None)


def _sum(
    b: Emitter,
    scope: ScopePlan,
    buffers: Buffers,
    point: Point,
    sums: list[int],
    total: Value | None,
) -> Value:
    """Reduce over `sums`, outermost first, going on from `total`."""
    if total is None:
        dtype = _dtype(scope).vector(point.lanes)
        total = identity(scope.reduction, dtype)
    if not sums:
        return combine(b, scope.reduction, total, _body(b, scope, buffers, point))
    if math.prod(point.extents[k] for k in sums) <= UNROLLED:
        for step in points([point.extents[k] for k in sums]):
            inner = point.at(dict(zip(sums, step, strict=True)))
            total = combine(b, scope.reduction, total, _body(b, scope, buffers, inner))
        return total
    iterator, *rest = sums
    with b.fold(0, point.extents[iterator], [total]) as loop:
        inner = point.at({iterator: loop.index})
        loop.next([_sum(b, scope, buffers, inner, rest, loop.values[0])])
    return loop.results[0]


def _dtype(scope: ScopePlan) -> Type:
    return compute_type(tensor_type(scope.op.result).element_type)


def _body(b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point) -> Value:
    arguments = [_argument(b, operand, buffers, point) for operand in scope.reads]
    return emit_body(b, scope.op.body.block, arguments, point.lanes)


def _argument(b: Emitter, operand: Operand, buffers: Buffers, point: Point) -> Value:
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
    if whole:
        with b.fold(0, whole, [total], lanes) as loop:
            inner = point.at({iterator: loop.index}, Vector(iterator, lanes))
            value = _body(b, scope, buffers, inner)
            loop.next([combine(b, scope.reduction, loop.values[0], value)])
        total = loop.results[0]
    if whole < extent:
        inner = point.at({iterator: whole}, Vector(iterator, lanes, extent - whole))
        value = _body(b, scope, buffers, inner)
        mask = b.mask(extent - whole, lanes)
        assert mask is not None
        value = b.select(mask, value, identity(scope.reduction, value.type))
        total = combine(b, scope.reduction, total, value)
    return total
