"""Rows whose lanes are neighbouring points: what lies channels last, say."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...dialects.index import Index
from ...dialects.kernel import KernelOp
from ...dialects.nest import STACK, ForOp, NestOp, StoreOp
from ...dialects.types import byte_width, tensor_type
from ..kernel_to_cpu.nests.lanes import addresses, lane_cost, power_of_two, result_address
from ..kernel_to_cpu.nests.nest import NestPlan, ScopePlan
from ..kernel_to_cpu.nests.nontemporal import streamed
from . import rewrites
from .build import Site, empty_nest
from .guards import cut_inside
from .point_sums import PointSums, cut_vectors, inner_loops, loop_path, sink
from .rolled_rows import Rolled, rolled
from .row_scopes import RowBuilder

# What all rows of a point may take of the stack, and of the cache.
MOST_BYTES = 1 << 17
# Vectors of a window that stay in registers.
MAX_KEPT = 12
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


def _along(scope: ScopePlan, plan: NestPlan, op: KernelOp, out: Index) -> float:
    """The cost of a scope's reads, and of storing the result, with lanes along its own loops."""
    flats = [flat for operand, flat in addresses(plan, op) if operand in scope.reads]
    targets = [out] if scope is plan.root else [Index(0)]
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


@dataclass(frozen=True)
class AcrossSchedule:
    """How rows of neighbouring points are run: lanes of a vector, vectors in one body."""

    lanes: int
    vectors: int


def common_window(plan: NestPlan) -> Rolled | None:
    """The window of one row that is kept in registers and moved; None if that does not do."""
    return rolled(plan)


def possible_vectors(plan: NestPlan, vector: int, lanes: int, window: Rolled | None) -> list[int]:
    """How many vectors of neighbours can share a body: whole ones, whose rows have room."""
    extent = plan.extents[vector]
    width = power_of_two(extent, lanes)

    def fit(n: int) -> bool:
        if window is not None:
            return window.width * n <= MAX_KEPT
        return _stack(plan, width * n) <= MOST_BYTES

    return [n for n in (1, 2, 4) if n == 1 or (extent % (width * n) == 0 and fit(n))]


def rows_across(
    op: KernelOp,
    plan: NestPlan,
    vector: int,
    chosen: AcrossSchedule,
    window: Rolled | None,
) -> NestOp:
    """Points in parallel, several vectors of neighbours sharing loops, weights and places."""
    out, extent = result_address(op, plan), plan.extents[vector]
    width, vectors = chosen.lanes, chosen.vectors
    shared = [k for k in range(plan.shared) if k != vector and plan.extents[k] != 1]
    nest = empty_nest(op)
    builder = RowBuilder(op, plan, nest, STACK, 1)
    builder.nontemporal = streamed(op.type, out, vector)
    site = Site(nest.body.block)
    for k in sorted(shared, key=lambda k: -out.coefficient(k)):
        _, site = site.loop(k, plan.extents[k], "parallel")
    run, site = site.loop(vector, extent)
    if window is not None:
        window.build(builder, site)
    for scope in plan.scopes if window is None else ():
        builder.scope(site, scope)
    runs = [run]
    if width * vectors < extent:
        outer, runs = rewrites.split_branch(run, width * vectors)
        rewrites.mark(outer, "parallel")
    for run in runs:
        _together(run, width, vectors)
    for loop in [op for op in nest.walk() if isinstance(op, ForOp)]:
        if loop.unroll is not None and loop.unroll.value.data == loop.size > 1:
            rewrites.mark(loop, "unrolled")
    return nest


def _together(run: ForOp, width: int, vectors: int) -> None:
    """Vectors of neighbours in one body."""
    for loop in inner_loops(run):
        if _is_row(loop) and not any(map(_is_row, inner_loops(loop))):
            cut_inside(loop, 1)
    for vector, lane in cut_vectors(run, width):
        sums = [loop_path(loop) for loop in _sums(lane)]
        sink(lane)
        if vector is not None:
            sink(vector)
        for path in sums:
            PointSums(width).reduce(path, vectors, written=False)


def _is_row(loop: ForOp) -> bool:
    """Whether a loop stores something at each place: it is over no summation."""
    last = loop.block.last_op
    while isinstance(last, ForOp):
        last = last.block.last_op
    return isinstance(last, StoreOp)


def _sums(loop: ForOp) -> list[ForOp]:
    """The outermost loops over summations in a loop."""
    found = list[ForOp]()
    for inner in inner_loops(loop):
        found += _sums(inner) if _is_row(inner) else [inner]
    return found
