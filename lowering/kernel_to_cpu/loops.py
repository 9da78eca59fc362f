"""Generate the code of `kernel.loops`: fused scopes as vectorised loop nests.

Two shapes of code. *Points*: all scopes share all loops; one iterator runs over vector lanes and
intermediates stay in registers. *Rows*: scopes share leading loops; within one shared point the
scopes run one after the other, intermediate rows on the stack (softmax, layer norm), reductions
along a row in the lanes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ...dialects.index import Index as Affine
from ...dialects.kernel import LoopsOp, physical
from ...dialects.types import tensor_type
from ..algebra_to_kernel.loops import shared_loops
from .access import Access, Point, Vector, compute_type, memory_type, store
from .emit import Emitter
from .isa import Isa
from .merging import merge_loops
from .module import KernelCode, Module, kernel
from .nest import (
    Buffers,
    NestPlan,
    ScopePlan,
    access,
    emit_horizontal,
    emit_scope,
    interior_at,
    plan_nest,
)
from .types import I64, Index, Type, Value

# Enough slices for a few threads to share evenly; more only cost index arithmetic.
SLICES = 64
# Vectors of one long loop that make up a slice.
TILE_VECTORS = 16
FLAGS = "nsz contract reassoc"


def emit_loops(op: LoopsOp, isa: Isa) -> KernelCode:
    """Emit one kernel. Arguments: the operands in order, then the result."""
    types = {arg: tensor_type(v) for arg, v in zip(op.body.block.args, op.inputs, strict=True)}
    plan = plan_nest(op.scopes, shared_loops(op.scopes))
    plan = merge_loops(plan, op.type, types)  # pyright: ignore[reportArgumentType]
    lanes = isa.lanes(_widest(op))
    vector = _vector_iterator(plan, op)
    points = all(not scope.own for scope in plan.scopes) and vector is not None
    body = _Points(op, plan, vector, lanes) if points else _Rows(op, plan, lanes)
    module = Module()

    def emit(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        places = dict(zip(op.body.block.args, pointers[:-1], strict=True))
        with b.flags(FLAGS):
            body.emit(b, Buffers(places, types), pointers[-1], low, high)  # pyright: ignore

    return kernel(module, len(op.inputs) + 1, body.items, emit)


def _widest(op: LoopsOp) -> Type:
    """The element type that decides how many lanes a vector has."""
    tensors = [*op.inputs, *(scope.result for scope in op.scopes)]
    elements = [tensor_type(v).element_type for v in tensors]
    return max((compute_type(e) for e in elements), key=lambda t: t.bits)


def _result(op: LoopsOp, plan: NestPlan, pointer: Value) -> Access:
    strides, offset, _ = physical(op.type)
    flat = Affine(offset)
    for e, stride in zip(plan.root.here, strides, strict=True):
        flat += e * stride
    return Access(pointer, op.type.element_type, flat)


def _vector_iterator(plan: NestPlan, op: LoopsOp) -> int | None:
    """The shared iterator whose lanes cost least; None if a summation's lanes cost less."""
    flats = _flats(plan, op)
    shared = [k for k in range(plan.shared) if plan.extents[k] != 1]
    costs = {k: _lane_cost(flats, k, plan.extents[k]) for k in shared}
    if not costs:
        return None
    best = min(costs, key=lambda k: (costs[k], -k))
    sums = [k for scope in plan.scopes for k in scope.sums]
    along = min((_lane_cost(flats, k, plan.extents[k]) for k in sums), default=math.inf)
    return None if along < costs[best] else best


def _flats(plan: NestPlan, op: LoopsOp) -> list[Affine]:
    types = {arg: tensor_type(v) for arg, v in zip(op.body.block.args, op.inputs, strict=True)}
    flats = [_result(op, plan, Value("", memory_type(op.type.element_type))).flat]
    for scope in plan.scopes:
        for operand in scope.reads:
            if operand.source in types:
                strides = physical(types[operand.source])[0]  # pyright: ignore
                flats.append(
                    sum((e * s for e, s in zip(operand.index, strides, strict=True)), Affine(0))
                )
    return flats


def _lane_cost(flats: Sequence[Affine], iterator: int, extent: int) -> float:
    """Modelled memory operations per element: 1/16 contiguous, 0 constant, 1 or more strided."""
    total = 0.0
    for position, flat in enumerate(flats):
        if iterator not in flat.iterators:
            # A result that does not move would be written by every lane: only summations do that.
            total += 0.0 if position else 0.05
        elif flat.coefficient(iterator) == 1 and not flat.has_floor:
            total += 1 / 16
        else:
            total += 1.0 if position else 1.2
    waste = -(-extent // 16) * 16 / extent
    return total * min(waste, 4.0) if extent < 16 else total


@dataclass
class _Points:
    """All loops shared; `vector` in the lanes, the rest as loops, outermost ones in parallel."""

    op: LoopsOp
    plan: NestPlan
    vector: int | None
    lanes: int

    def __post_init__(self) -> None:
        assert self.vector is not None
        out = _result(self.op, self.plan, Value("", memory_type(self.op.type.element_type))).flat
        others = [
            k for k in range(self.plan.shared) if k != self.vector and self.plan.extents[k] != 1
        ]
        self.order = sorted(others, key=lambda k: -out.coefficient(k))
        self.extent = self.plan.extents[self.vector]
        self.width = _power_of_two(self.extent, self.lanes)
        self.parallel: list[int] = []
        count = 1
        for k in self.order:
            if count >= SLICES:
                break
            self.parallel.append(k)
            count *= self.plan.extents[k]
        self.tile = self.extent
        if count < SLICES and self.extent > self.width * TILE_VECTORS:
            share = -(-self.extent * count // SLICES)
            self.tile = max(TILE_VECTORS, -(-share // self.width)) * self.width
        self.tiles = -(-self.extent // self.tile)
        self.items = count * self.tiles

    def emit(self, b: Emitter, buffers: Buffers, result: Value, low: Index, high: Index) -> None:
        target = _result(self.op, self.plan, result)
        with b.loop(low, high) as item:
            rest, tile = b.split(item, self.tiles)
            values = split_item(b, rest, self.parallel, self.plan.extents)
            point = Point(self.plan.extents, values)
            inner = [k for k in self.order if k not in self.parallel]
            self._loops(b, buffers, target, point, inner, tile)

    def _loops(
        self,
        b: Emitter,
        buffers: Buffers,
        target: Access,
        point: Point,
        inner: list[int],
        tile: Index,
    ) -> None:
        if inner:
            with b.loop(0, self.plan.extents[inner[0]]) as index:
                self._loops(b, buffers, target, point.at({inner[0]: index}), inner[1:], tile)
            return
        assert self.vector is not None
        if self.tiles == 1:
            self._guarded(b, buffers, target, point)
            return
        full = self.extent // self.tile
        start = b.mul(tile, self.tile)
        last = b.compare("ge", b.value(tile, I64), full)
        rest = self.extent - full * self.tile

        def whole() -> Sequence[Value]:
            self._range(b, buffers, target, point, start, self.tile)
            return []

        def partial() -> Sequence[Value]:
            self._range(b, buffers, target, point, full * self.tile, rest)
            return []

        if rest:
            b.if_else(last, partial, whole)
        else:
            whole()

    def _guarded(self, b: Emitter, buffers: Buffers, target: Access, point: Point) -> None:
        """The whole vector loop, twice where there are bounds to check: inside, none is checked."""
        assert self.vector is not None
        inside = interior_at(b, self.plan, buffers, point, self.vector)
        if inside is None:
            self._range(b, buffers, target, point, 0, self.extent)
            return
        unchecked = replace(buffers, lanes=self.vector, interior=True)

        def emit(which: Buffers) -> list[Value]:
            self._range(b, which, target, point, 0, self.extent)
            return []

        b.if_else(inside, lambda: emit(unchecked), lambda: emit(buffers))

    def _range(
        self, b: Emitter, buffers: Buffers, target: Access, point: Point, start: Index, count: int
    ) -> None:
        """The vector loop over `count` elements from `start`, with a masked end."""
        assert self.vector is not None
        whole = count - count % self.width
        if whole:
            with b.loop(0, whole, self.width) as step:
                at = point.at({self.vector: b.add(start, step)}, Vector(self.vector, self.width))
                self._point(b, buffers, target, at)
        if whole < count:
            vector = Vector(self.vector, self.width, count - whole)
            self._point(b, buffers, target, point.at({self.vector: b.add(start, whole)}, vector))

    def _point(self, b: Emitter, buffers: Buffers, target: Access, point: Point) -> None:
        here = replace(buffers, values={})
        for scope in self.plan.scopes:
            here.values[scope.op.result] = emit_scope(b, scope, here, point)
        store(b, here.values[self.plan.root.op.result], target, point)


@dataclass
class _Rows:
    """Shared loops in parallel; within a point the scopes one after the other."""

    op: LoopsOp
    plan: NestPlan
    lanes: int

    def __post_init__(self) -> None:
        self.items = max(1, math.prod(self.plan.extents[: self.plan.shared]))

    def emit(self, b: Emitter, buffers: Buffers, result: Value, low: Index, high: Index) -> None:
        rows: dict[SSAValue, tuple[Value, ScopePlan]] = {
            scope.op.result: (self._reserve(b, scope), scope)
            for scope in self.plan.scopes[:-1]
            if scope.own
        }
        target = _result(self.op, self.plan, result)
        with b.loop(low, high) as item:
            values = split_item(b, item, list(range(self.plan.shared)), self.plan.extents)
            point = Point(self.plan.extents, values)
            here = Buffers(buffers.pointers, buffers.types, dict(rows))
            for scope in self.plan.scopes:
                self._scope(b, scope, here, point, target)

    def _reserve(self, b: Emitter, scope: ScopePlan) -> Value:
        count = math.prod(self.plan.extents[k] for k in scope.own)
        element = tensor_type(scope.op.result).element_type
        return b.reserve(memory_type(element), count + self.lanes)

    def _scope(
        self, b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point, target: Access
    ) -> None:
        last = scope is self.plan.root
        if scope.own:
            place = target if last else self._row(scope, buffers)
            self._row_loops(b, scope, buffers, point, place, list(scope.own))
            return
        along = _contiguous_sum(scope, buffers, self.plan.extents)
        if along is None:
            value = emit_scope(b, scope, buffers, point)
        else:
            lanes = _power_of_two(self.plan.extents[along], self.lanes)
            value = emit_horizontal(b, scope, buffers, point, along, lanes)
        if last:
            store(b, value, target, point)
        buffers.values[scope.op.result] = value

    def _row(self, scope: ScopePlan, buffers: Buffers) -> Access:
        pointer, _ = buffers.rows[scope.op.result]
        flat, stride = Affine(0), 1
        for k in reversed(scope.own):
            flat += Affine.iterator(k) * stride
            stride *= self.plan.extents[k]
        return Access(pointer, tensor_type(scope.op.result).element_type, flat)

    def _row_loops(
        self,
        b: Emitter,
        scope: ScopePlan,
        buffers: Buffers,
        point: Point,
        place: Access,
        own: list[int],
    ) -> None:
        if len(own) > 1:
            with b.loop(0, point.extents[own[0]]) as index:
                self._row_loops(b, scope, buffers, point.at({own[0]: index}), place, own[1:])
            return
        (iterator,) = own
        extent = point.extents[iterator]
        lanes = _power_of_two(extent, self.lanes)
        whole = extent - extent % lanes
        if whole:
            with b.loop(0, whole, lanes) as index:
                at = point.at({iterator: index}, Vector(iterator, lanes))
                store(b, emit_scope(b, scope, buffers, at), place, at)
        if whole < extent:
            at = point.at({iterator: whole}, Vector(iterator, lanes, extent - whole))
            store(b, emit_scope(b, scope, buffers, at), place, at)


def _contiguous_sum(scope: ScopePlan, buffers: Buffers, extents: tuple[int, ...]) -> int | None:
    """The summation along which most reads are contiguous."""
    reads = [
        access(operand, buffers, extents)
        for operand in scope.reads
        if operand.source not in buffers.values
    ]
    scores = {k: sum(a.is_contiguous(k) for a in reads) for k in scope.sums}
    best = max(scores, key=lambda k: (scores[k], extents[k]), default=None)
    return best if best is not None and scores[best] else None


def split_item(
    b: Emitter, item: Index, iterators: Sequence[int], extents: tuple[int, ...]
) -> dict[int, Index]:
    """Iterator values of a flat item number, the last iterator fastest."""
    values: dict[int, Index] = {}
    for k in reversed(iterators[1:]):
        item, values[k] = b.split(item, extents[k])
    if iterators:
        values[iterators[0]] = item
    return values


def _power_of_two(extent: int, lanes: int) -> int:
    """Lanes for a loop: the full width, or the least power of two that holds a short loop."""
    while lanes > 1 and lanes // 2 >= extent:
        lanes //= 2
    return max(lanes, 1)
