"""Loop nests with short rows that are read at shifted or repeated places: rows stay in registers.

A load of what several stores have just written waits for them. Rows written out vector by vector
need no stores: what a vector reads of a row is a shuffle of the row's vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.index import Index as Affine
from ....dialects.kernel import KernelOp
from ..emit.access import Access, Point, Vector, store
from ..emit.emitter import Emitter
from ..emit.types import Index, Value
from .lanes import result_access, result_address, split_item
from .nest import Buffers, HeldRow, NestOperand, NestPlan, ScopePlan
from .nontemporal import streamed
from .reduction import UNROLLED, emit_scope, fetch_ahead, is_from_memory

# Vectors that all rows of a point may have, and reads that are written out for them.
MOST_VECTORS = 128
MOST_READS = 768


def can_be_held(plan: NestPlan, lanes: int) -> bool:
    """Whether every scope makes a short row, and one is read elsewhere than where it is made."""
    made: dict[SSAValue, ScopePlan] = {scope.op.result: scope for scope in plan.scopes}
    vectors, reads = 0, 0
    for scope in plan.scopes:
        taps = math.prod(plan.extents[k] for k in scope.sums)
        if len(scope.own) != 1 or taps > UNROLLED:
            return False
        count = -(-plan.extents[scope.own[0]] // lanes)
        vectors, reads = vectors + count, reads + count * taps * len(scope.reads)
        if not all(_is_along(operand, scope, made, plan) for operand in scope.reads):
            return False
    shifted = any(
        operand.source in made and _index(operand, made) != Affine.iterator(scope.own[0])
        for scope in plan.scopes
        for operand in scope.reads
    )
    return shifted and vectors <= MOST_VECTORS and reads <= MOST_READS


def _index(operand: NestOperand, made: dict[SSAValue, ScopePlan]) -> Affine:
    """What a read of a row says of the row's own dim."""
    own = made[operand.source].own[0]
    dim = next(d for d, e in enumerate(made[operand.source].here) if own in e.iterators)
    return operand.index[dim]


def _is_along(
    operand: NestOperand, scope: ScopePlan, made: dict[SSAValue, ScopePlan], plan: NestPlan
) -> bool:
    """Whether a read of a row depends on known numbers only: its place in its own row, and taps."""
    if operand.source not in made:
        return True
    return _index(operand, made).iterators <= {*scope.own, *scope.sums}


@dataclass
class RowsHeld:
    """Shared loops in parallel; within a point the scopes one after the other, written out."""

    op: KernelOp
    plan: NestPlan
    lanes: int

    def __post_init__(self) -> None:
        self.items = max(1, math.prod(self.plan.extents[: self.plan.shared]))
        out = result_address(self.op, self.plan)
        self.streamed = streamed(self.op.type, out, self.plan.root.own[0])

    def emit(self, b: Emitter, buffers: Buffers, result: Value, low: Index, high: Index) -> None:
        target = result_access(self.op, self.plan, result)
        # A row is more instructions than a processor has in flight: it would not read the next.
        far = any(is_from_memory(scope, buffers) for scope in self.plan.scopes)
        ahead = (self.plan.shared - 1, 1) if far and self.plan.shared else (0, 0)
        with b.loop(low, high) as item:
            values = split_item(b, item, list(range(self.plan.shared)), self.plan.extents)
            point = Point(self.plan.extents, values)
            here = Buffers(buffers.pointers, buffers.types, ahead=ahead)
            for scope in self.plan.scopes:
                self._scope(b, scope, here, point, target)

    def _scope(
        self, b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point, target: Access
    ) -> None:
        (iterator,) = scope.own
        extent, made = point.extents[iterator], list[Value]()
        for start in range(0, extent, self.lanes):
            mask = None if start + self.lanes <= extent else extent - start
            at = point.at({iterator: start}, Vector(iterator, self.lanes, mask, aligned=True))
            fetch_ahead(b, scope, [(buffers, at)])
            made.append(emit_scope(b, scope, buffers, at))
            if scope is self.plan.root:
                store(b, made[-1], target, at, nontemporal=self.streamed)
        dim = next(d for d, e in enumerate(scope.here) if iterator in e.iterators)
        buffers.held[scope.op.result] = HeldRow(dim, extent, tuple(made))
