"""Generate the code of `kernel.loops`: fused scopes as vectorised loop nests.

Two shapes of code. *Points*: all scopes share all loops; one iterator runs over vector lanes. They
run on nests (kernel_to_nest/points.py). *Rows*: scopes share leading loops; within one shared point
the scopes run one after the other, intermediate rows on the stack (softmax, layer norm), reductions
along a row in the lanes. Two more of rows: short ones that are read at shifted places stay in
registers (rows_held.py); where neighbouring points lie side by side, these are in the lanes
(rows_across.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.ir import SSAValue

from ....dialects.kernel import KernelOp
from ....dialects.types import byte_size, tensor_type
from ...algebra_to_kernel.loops import shared_loops
from ..emit.access import Access, Point, Vector, lane_offsets, store
from ..emit.emitter import Emitter
from ..emit.module import KernelCode, Module, kernel
from ..emit.types import Index, Type, Value
from ..isa import Isa
from .inlined import inline_rows
from .lanes import (
    power_of_two,
    result_access,
    result_address,
    split_item,
    vector_iterator,
    widest,
)
from .merging import merge_loops
from .nest import Buffers, NestPlan, Row, ScopePlan, access, plan_nest
from .nontemporal import streamed
from .reduction import emit_horizontal, emit_scope
from .rows_across import RowsAcross, lanes_across
from .rows_held import RowsHeld, can_be_held
from .stack_rows import (
    MOST_BYTES,
    MOST_RESULT,
    TOGETHER,
    UNROLL,
    moved,
    reserve_row,
    row_access,
    stages,
)

Body: TypeAlias = "RowsAcross | RowsHeld | _Rows"
# Reads of vectors in a row that is written out, not a loop.
MOST_READS = 256


def emit_loops(op: KernelOp, isa: Isa) -> KernelCode:
    """Emit one kernel. Arguments: the operands in order, then the result."""
    types = {arg: tensor_type(v) for arg, v in zip(op.body.block.args, op.inputs, strict=True)}
    plan = plan_nest(op.scopes, shared_loops(op.scopes))
    plan = merge_loops(plan, op.type, types)  # pyright: ignore[reportArgumentType]
    lanes = isa.lanes(widest(op))
    vector = vector_iterator(plan, op)
    if vector is not None and not any(scope.own for scope in plan.scopes):
        return _points(op, plan, vector, isa, lanes)
    body = _body(op, plan, lanes)
    module = Module()

    def emit(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        places = dict(zip(op.body.block.args, pointers[:-1], strict=True))
        buffers = Buffers(places, types, optimistic=not isa.keeps_nan)  # pyright: ignore
        body.emit(b, buffers, pointers[-1], low, high)

    return kernel(module, len(op.inputs) + 1, body.items, emit)


def _points(op: KernelOp, plan: NestPlan, vector: int, isa: Isa, lanes: int) -> KernelCode:
    """Points run on a nest. Its forms are imported when there is such a kernel."""
    from ...kernel_to_nest.rewrites import drop_single
    from ...kernel_to_nest.schedule import point_nest
    from ...nest_to_llvm.printer import print_llvm

    nest = point_nest(op, plan, vector, isa, lanes)
    drop_single(nest.body.block)
    return print_llvm(nest)


def _body(op: KernelOp, plan: NestPlan, lanes: int) -> Body:
    across = lanes_across(plan, op, lanes)
    if across is not None:
        return RowsAcross(op, plan, across, lanes)
    if can_be_held(plan, lanes):
        return RowsHeld(op, plan, lanes)
    return _Rows(op, inline_rows(plan), lanes)


@dataclass
class _Rows:
    """Shared loops in parallel; within a point the scopes one after the other."""

    op: KernelOp
    plan: NestPlan
    lanes: int

    def __post_init__(self) -> None:
        self.items = max(1, math.prod(self.plan.extents[: self.plan.shared]))
        out = result_address(self.op, self.plan)
        inner = self.plan.root.own[-1:]
        self.streamed = streamed(self.op.type, out, inner[0]) if inner else 0
        self.together = self._together()

    def _together(self) -> int:
        """Points that take turns, so that none waits for a sum over a row: their rows lie in L1."""
        rows = [math.prod(self.plan.extents[k] for k in scope.own) for scope in self.plan.scopes]
        size = 8 * max(rows) + sum(4 * n for n in rows[:-1] if n > 1)
        small = size * TOGETHER <= MOST_BYTES and byte_size(self.op.type) <= MOST_RESULT
        return TOGETHER if small and self.plan.shared and len(stages(self.plan.scopes)) > 1 else 1

    def emit(self, b: Emitter, buffers: Buffers, result: Value, low: Index, high: Index) -> None:
        rows: dict[SSAValue, Row] = {
            scope.op.result: reserve_row(b, scope, self.plan, self.lanes, points=self.together)
            for scope in self.plan.scopes[:-1]
            if scope.own
        }
        target = result_access(self.op, self.plan, result)
        if self.together == 1:
            with b.loop(low, high) as item:
                here = replace(buffers, rows=dict(rows), values={})
                self._scopes(b, self.plan.scopes, here, item, target)
            return
        self._in_turns(b, buffers, rows, target, (low, high))

    def _in_turns(
        self,
        b: Emitter,
        buffers: Buffers,
        rows: Mapping[SSAValue, Row],
        target: Access,
        bounds: tuple[Index, Index],
    ) -> None:
        """Several points up to each sum over a row, what they have found by then on the stack."""
        slots: dict[SSAValue, tuple[Type, Value]] = {}
        low, high = bounds
        with b.loop(low, high, self.together) as first:
            count = b.minimum(b.sub(high, first), self.together)
            for scopes in stages(self.plan.scopes):
                with b.loop(0, count, unroll=1) as k:
                    here = replace(
                        buffers,
                        rows={v: moved(b, row, b.mul(k, row.step)) for v, row in rows.items()},
                        values={v: b.load(t, slot, k) for v, (t, slot) in slots.items()},
                    )
                    known = set(here.values)
                    self._scopes(b, scopes, here, b.add(first, k), target)
                    for v, value in here.values.items():
                        if v not in known:
                            slots[v] = value.type, b.reserve(value.type, self.together)
                            b.store(value, slots[v][1], k)

    def _scopes(
        self,
        b: Emitter,
        scopes: Sequence[ScopePlan],
        buffers: Buffers,
        item: Index,
        target: Access,
    ) -> None:
        """Scopes, one after the other, at one point."""
        values = split_item(b, item, list(range(self.plan.shared)), self.plan.extents)
        point = Point(self.plan.extents, values)
        for scope in scopes:
            self._scope(b, scope, buffers, point, target)

    def _scope(
        self, b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point, target: Access
    ) -> None:
        last = scope is self.plan.root
        if scope.own:
            place = target if last else row_access(buffers.rows[scope.op.result])
            streamed = self.streamed if last else 0
            self._row_loops(b, scope, buffers, point, place, list(scope.own), streamed)
            return
        along = _contiguous_sum(scope, buffers, self.plan.extents)
        if along is None:
            value = emit_scope(b, scope, buffers, point)
        else:
            lanes = power_of_two(self.plan.extents[along], self.lanes)
            value = emit_horizontal(b, scope, buffers, point, along, lanes)
        if last:
            store(b, value, target, point)
        buffers.values[scope.op.result] = value

    def _row_loops(
        self,
        b: Emitter,
        scope: ScopePlan,
        buffers: Buffers,
        point: Point,
        place: Access,
        own: list[int],
        streamed: int,
    ) -> None:
        if len(own) > 1:
            with b.loop(0, point.extents[own[0]]) as index:
                at = point.at({own[0]: index})
                self._row_loops(b, scope, buffers, at, place, own[1:], streamed)
            return
        (iterator,) = own
        extent = point.extents[iterator]
        lanes = power_of_two(extent, self.lanes)
        whole = extent - extent % lanes

        def vector(index: Index) -> None:
            at = point.at({iterator: index}, Vector(iterator, lanes, aligned=True))
            store(b, emit_scope(b, scope, buffers, at), place, at, nontemporal=streamed)

        if whole and _written_out(scope, buffers, point.extents, iterator, lanes):
            for start in range(0, whole, lanes):
                vector(start)
        elif whole:
            with b.loop(0, whole, lanes, unroll=UNROLL) as index:
                vector(index)
        if whole < extent:
            at = point.at({iterator: whole}, Vector(iterator, lanes, extent - whole, aligned=True))
            store(b, emit_scope(b, scope, buffers, at), place, at, nontemporal=streamed)


def _written_out(
    scope: ScopePlan, buffers: Buffers, extents: tuple[int, ...], iterator: int, lanes: int
) -> bool:
    """Whether lanes lie at other distances in each vector of a row: known ones, without a loop."""
    reads = math.prod(extents[k] for k in scope.sums) * len(scope.reads)
    if extents[iterator] // lanes * reads > MOST_READS:
        return False
    flats = [
        access(operand, buffers, extents).flat
        for operand in scope.reads
        if operand.source not in buffers.values
    ]
    return any(
        iterator in flat.iterators and lane_offsets(flat, iterator, lanes) is None for flat in flats
    )


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
