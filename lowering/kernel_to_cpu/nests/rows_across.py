"""Loop nests with rows whose lanes are neighbouring points: what lies channels last, say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....dialects.index import Index as Affine
from ....dialects.kernel import KernelOp
from ....dialects.types import byte_width, tensor_type
from ..emit.access import Access, Point, Vector, store
from ..emit.emitter import Emitter
from ..emit.types import I64, Index, Value
from .lanes import addresses, lane_cost, power_of_two, result_access, result_address, split_item
from .nest import Buffers, NestPlan, ScopePlan
from .nontemporal import streamed
from .reduction import emit_scopes
from .rows_rolled import rolled
from .stack_rows import moved, reserve_row, row_access

# What all rows of a point may take of the stack, and of the cache.
MOST_BYTES = 1 << 17
# Vectors of a window that stay in registers.
MOST_KEPT = 12
# Rows in the lanes of neighbouring points must promise this much: each is a whole row.
GAIN = 2.0


def lanes_across(plan: NestPlan, op: KernelOp, lanes: int) -> int | None:
    """The shared iterator whose lanes make rows cost less than lanes along the rows; or None."""
    if not plan.shared:
        return None
    out = result_address(op, plan)
    reads = addresses(plan, op)
    shared = [k for k in range(plan.shared) if plan.extents[k] >= lanes // 2 > 0]
    costs = {k: lane_cost([out, *(flat for _, flat in reads)], k, plan.extents[k]) for k in shared}
    best = min(costs, key=lambda k: (costs[k], -k), default=None)
    if best is None or _stack(plan, lanes) > MOST_BYTES:
        return None
    along = sum(_along(scope, plan, op, out) for scope in plan.scopes)
    return best if costs[best] * GAIN <= along else None


def _along(scope: ScopePlan, plan: NestPlan, op: KernelOp, out: Affine) -> float:
    """The cost of a scope's reads, and of storing the result, with lanes along its own loops."""
    flats = [flat for operand, flat in addresses(plan, op) if operand in scope.reads]
    targets = [out] if scope is plan.root else [Affine(0)]
    ways = [*scope.own[-1:], *scope.sums]
    return min((lane_cost([*targets, *flats], k, plan.extents[k]) for k in ways), default=0.0)


def _stack(plan: NestPlan, lanes: int) -> int:
    made = (
        math.prod(plan.extents[k] for k in scope.own)
        * byte_width(tensor_type(scope.op.result).element_type)
        for scope in plan.scopes[:-1]
        if scope.own
    )
    return sum(made) * lanes


@dataclass
class RowsAcross:
    """Shared loops in parallel, `vector` in the lanes; within a point the scopes one by one."""

    op: KernelOp
    plan: NestPlan
    vector: int
    lanes: int

    def __post_init__(self) -> None:
        self.extent = self.plan.extents[self.vector]
        self.rolled = rolled(self.plan)
        self.width = power_of_two(self.extent, self.lanes)
        # Vectors of a point that share its loops, weights and places.
        self.vectors = next(
            n
            for n in (4, 2, 1)
            if n == 1
            or (
                self.extent % (self.width * n) == 0
                and (
                    self.rolled.width * n <= MOST_KEPT
                    if self.rolled
                    else _stack(self.plan, self.width * n) <= MOST_BYTES
                )
            )
        )
        self.together = self.width * self.vectors
        self.parts = -(-self.extent // self.together)
        shared = [k for k in range(self.plan.shared) if k != self.vector]
        out = result_address(self.op, self.plan)
        self.streamed = streamed(self.op.type, out, self.vector)
        self.others = sorted(shared, key=lambda k: -out.coefficient(k))
        self.items = self.parts * math.prod(self.plan.extents[k] for k in self.others)

    def emit(self, b: Emitter, buffers: Buffers, result: Value, low: Index, high: Index) -> None:
        rows = {
            scope.op.result: reserve_row(
                b, scope, self.plan, self.lanes, (self.vector, self.together)
            )
            for scope in self.plan.scopes[:-1]
            if scope.own and self.rolled is None
        }
        target = result_access(self.op, self.plan, result)
        rest = self.extent % self.width
        with b.loop(low, high) as item:
            outer, part = b.split(item, self.parts)
            values = split_item(b, outer, self.others, self.plan.extents)
            start = b.mul(part, self.together)
            back = b.sub(0, start)
            here = {v: moved(b, row, back) for v, row in rows.items()}
            inside = replace(buffers, rows=here)

            def points(mask: int | None) -> list[Value]:
                lanes = Vector(self.vector, self.width, mask, aligned=True)
                starts = [b.add(start, k * self.width) for k in range(self.vectors)]
                at = [
                    Point(self.plan.extents, {**values, self.vector: first}, lanes)
                    for first in starts
                ]
                self._points(b, inside, at, target)
                return []

            if not rest:
                points(None)
            elif self.parts == 1:
                points(rest)
            else:
                last = b.compare("eq", b.value(part, I64), self.parts - 1)
                b.if_else(last, lambda: points(rest), lambda: points(None))

    def _points(
        self, b: Emitter, buffers: Buffers, points: Sequence[Point], target: Access
    ) -> None:
        """All scopes at neighbouring vectors. Rows are of these: the first lane is their 0."""
        places = [(replace(buffers, values={}), point) for point in points]
        if self.rolled is not None:
            self.rolled.emit(b, places, target, self.streamed)
            return
        for scope in self.plan.scopes:
            last = scope is self.plan.root
            if scope.own:
                made = target if last else row_access(buffers.rows[scope.op.result])
                self._loops(b, scope, places, made, scope.own, self.streamed if last else 0)
                continue
            values = emit_scopes(b, scope, places)
            for (here, point), value in zip(places, values, strict=True):
                here.values[scope.op.result] = value
                if last:
                    store(b, value, target, point, nontemporal=self.streamed)

    def _loops(
        self,
        b: Emitter,
        scope: ScopePlan,
        places: Sequence[tuple[Buffers, Point]],
        made: Access,
        own: Sequence[int],
        nontemporal: int,
    ) -> None:
        if not own:
            for value, (_, point) in zip(emit_scopes(b, scope, places), places, strict=True):
                store(b, value, made, point, nontemporal=nontemporal)
            return
        with b.loop(0, self.plan.extents[own[0]]) as index:
            at = [(here, point.at({own[0]: index})) for here, point in places]
            self._loops(b, scope, at, made, own[1:], nontemporal)
