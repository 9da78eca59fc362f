"""Points: scopes that share all loops, one of them in the lanes of vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...dialects.kernel import KernelOp
from ...dialects.nest import ForOp, NestOp, StoreOp
from ...dialects.types import byte_size, tensor_type
from ..kernel_to_cpu.emit.access import memory_type
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.lanes import SLICES, power_of_two, result_address
from ..kernel_to_cpu.nests.nest import NestPlan, ScopePlan
from ..kernel_to_cpu.nests.nontemporal import is_peeled, streamed
from . import rewrites
from .build import Builder, Site, empty_nest
from .guards import cut_inside, regions
from .peeled import peel
from .point_sums import CHAINS, UNROLLED, PointSums

# Vectors of one long loop that make up a slice.
TILE_VECTORS = 16
# Points with overlapping windows that are computed together.
STACK = 4
# Bytes of an operand, more than a second-level cache holds.
LEAST_BYTES_AHEAD = 2 << 20
# Limit for the rows of points in the first-level cache, beside their operands.
MAX_STAGED = 1 << 14


def plain_points(
    op: KernelOp, plan: NestPlan, vector: int = -1
) -> tuple[NestOp, dict[int, ForOp], StoreOp]:
    """The nest without a schedule: (it, the loop of each iterator, the store of the result).

    Sums along the lanes of `vector` are the outermost ones.
    """
    nest = empty_nest(op)
    builder = Builder(op, plan, nest)
    site, loops = Site(nest.body.block), dict[int, ForOp]()
    for k in range(plan.shared):
        if plan.extents[k] != 1:
            loops[k], site = site.loop(k, plan.extents[k])
    if any(scope.sums for scope in plan.scopes):
        for scope in plan.scopes:
            builder.keep(site, scope, sum_groups(scope, plan, vector))
        store = site.block.last_op
        assert isinstance(store, StoreOp)
        return nest, loops, store
    for scope in plan.scopes:
        site.values[scope.op.result] = builder.body(site, scope)
    return nest, loops, builder.store(site, site.values[plan.root.op.result])


def sum_groups(scope: ScopePlan, plan: NestPlan, vector: int = -1) -> list[list[int]]:
    """The summations along a window of the lanes, then the others, those written out one by one."""
    along = _along_lanes(scope, vector)
    rest = [k for k in scope.sums if k not in along]
    long = 0
    while math.prod(plan.extents[k] for k in rest[long:]) > UNROLLED:
        long += 1
    others = [rest[: long + 1], *([k] for k in rest[long + 1 :])]
    return [group for group in (along, *others) if group]


def _along_lanes(scope: ScopePlan, vector: int) -> list[int]:
    """The summations that move a scope's one read along the dim that the lanes do."""
    dims = [e for read in scope.reads for e in read.index if vector in e.iterators]
    if len(scope.reads) != 1 or len(dims) != 1:
        return []
    others = {k for e in scope.reads[0].index if e is not dims[0] for k in e.iterators}
    return [k for k in scope.sums if k in dims[0].iterators and k not in others]


@dataclass(frozen=True)
class PointsSchedule:
    """How points are run.

    Attributes:
        lanes: of a vector.
        items: outer loops are in parallel until they are as many items.
        block: vectors that share the loops over long sums.
        stack: neighbours with overlapping windows that are computed together.
        unroll: vectors of one iteration, where there are no sums; 0 is as LLVM likes.
        staged: whether rows of totals stay on the stack until they are whole, where that applies.
        chains: totals of a reduction.
    """

    lanes: int
    items: int
    block: int
    stack: int
    unroll: int
    staged: int
    chains: int


def default_points(
    op: KernelOp, plan: NestPlan, vector: int, isa: Isa, lanes: int
) -> PointsSchedule:
    """The schedule of a model."""
    block = isa.registers // 2 if _has_long_sums(plan) else 1
    order = outer_order(op, plan, vector)
    along = _stacked(plan, order, _parallel(plan, order, SLICES)[0], vector, block)
    staged = _is_staged(op, plan.extents[vector], lanes, along is not None)
    width = power_of_two(plan.extents[vector], lanes)
    stack = 1 if along is None else STACK
    return PointsSchedule(width, SLICES, block, stack, 0, int(staged), CHAINS)


def outer_order(op: KernelOp, plan: NestPlan, vector: int) -> list[int]:
    """The loops around the lanes, as they lie in the result."""
    out = result_address(op, plan)
    others = [k for k in range(plan.shared) if k != vector and plan.extents[k] != 1]
    return sorted(others, key=lambda k: -out.coefficient(k))


def _parallel(plan: NestPlan, order: Sequence[int], items: int) -> tuple[list[int], int]:
    """The outer loops that make so many items, and how many they are."""
    parallel: list[int] = []
    count = 1
    for k in order:
        if count < items:
            parallel.append(k)
            count *= plan.extents[k]
    return parallel, count


def points(
    op: KernelOp, plan: NestPlan, vector: int, isa: Isa, lanes: int, chosen: PointsSchedule
) -> NestOp:
    """Outer loops in parallel, vectors innermost."""
    out, width, block = result_address(op, plan), chosen.lanes, chosen.block
    order = outer_order(op, plan, vector)
    parallel, count = _parallel(plan, order, chosen.items)
    usual = isa.registers // 2 if _has_long_sums(plan) else 1
    along = _stacked(plan, order, parallel, vector, usual) if chosen.stack > 1 else None
    if along is not None:
        shared = _overlapping(plan, along)
        plan = replace(plan, scopes=[_first(scope, shared) for scope in plan.scopes])
    nest, loops, store = plain_points(op, plan, vector)
    rewrites.reorder([loops[k] for k in (*order, vector)])
    for k in parallel:
        rewrites.mark(loops[k], "parallel")
    rewrites.store_nontemporal(store, streamed(op.type, out, vector))
    lane = loops[vector]
    shifted = is_peeled(op.type, out, vector, lane.size, width)
    runs, tiled = [lane], False
    last = (loops[order[-1]].iterator, 1) if order else None
    if along is not None:
        outer, runs = _stack(loops, order, along, chosen.stack)
        assert last is not None
        last = (outer.iterator, 1) if along == order[-1] else (last[0], chosen.stack)
    elif count < chosen.items and lane.size > width * TILE_VECTORS:
        step = width * block  # what is left of a tile goes vector by vector
        share = max(TILE_VECTORS * width, -(-lane.size * count // (chosen.items * step)) * step)
        outer, runs = rewrites.split_branch(lane, share)
        rewrites.mark(outer, "parallel")
        tiled = True
    if not any(scope.sums for scope in plan.scopes):
        _plain(runs, width, shifted, chosen.unroll or None)
        return nest
    staged = shifted and not tiled and chosen.staged > 0
    far = any(byte_size(tensor_type(v)) >= LEAST_BYTES_AHEAD for v in op.inputs)
    ahead = last if far else None
    for run in runs:
        PointSums(width, along is not None, block, staged, ahead, chosen.chains).run(run)
    return nest


def _plain(runs: Sequence[ForOp], width: int, shifted: bool, unroll: int | None) -> None:
    """Vectors of points without sums, in a copy for each region."""
    for run in runs:
        for region in regions(run):
            if not shifted or not peel(region, width):
                for part in cut_inside(region, width):
                    rewrites.vectorise(part, width, unroll)


def _is_staged(op: KernelOp, size: int, lanes: int, stacked: bool) -> bool:
    """Whether rows of totals stay on the stack until they are whole.

    Measured: of a pool with strides, where little is stored, it gains nothing.
    """
    row = (size // lanes + 2) * lanes * (STACK if stacked else 1)
    small = row * memory_type(op.type.element_type).bytes <= MAX_STAGED
    return small and 2 * byte_size(op.type) >= sum(byte_size(tensor_type(v)) for v in op.inputs)


def _stacked(
    plan: NestPlan, order: Sequence[int], parallel: Sequence[int], vector: int, block: int
) -> int | None:
    """The loop along which windows overlap, one of the innermost: its points share much.

    Where no window lies along the lanes, that is the outer one of two: a row of such windows is
    longer than the first-level cache holds of several, and is then read less often.
    """
    inner = [k for k in order[-2:] if k == order[-1] or k in parallel]
    windows = _overlapping(plan, vector)
    if windows:
        inner = inner[-1:]
    found = next((k for k in inner if _overlapping(plan, k)), None)
    return found if block == 1 or windows else None


def _stack(
    loops: Mapping[int, ForOp], order: Sequence[int], along: int, size: int
) -> tuple[ForOp, list[ForOp]]:
    """Cut a loop into stacks of neighbours, whose loops go inside of those over lanes.

    Gives the loop over stacks, and those over lanes.
    """
    behind = [loops[k] for k in order[order.index(along) + 1 :]]
    for _ in behind:
        rewrites.interchange(loops[along])
    kind = loops[along].kind.data
    outer, stacks = rewrites.split_branch(loops[along], min(size, loops[along].size))
    rewrites.mark(outer, kind)
    for loop in reversed(behind):
        rewrites.interchange(loop)
    return outer, [rewrites.interchange(rewrites.mark(stack, "serial")) for stack in stacks]


def _has_long_sums(plan: NestPlan) -> bool:
    """Whether a summation is a loop, not written out."""
    return any(math.prod(plan.extents[k] for k in scope.sums) > UNROLLED for scope in plan.scopes)


def _overlapping(plan: NestPlan, iterator: int) -> dict[int, None]:
    """Summations over windows that neighbours along an iterator have parts of in common."""
    found: dict[int, None] = {}
    for scope in plan.scopes:
        for operand in scope.reads:
            for e in operand.index:
                step = e.coefficient(iterator)
                for k in scope.sums if step else ():
                    tap = e.coefficient(k)
                    if tap and step % tap == 0 and 0 < step // tap < plan.extents[k]:
                        found[k] = None
    return found


def _first(scope: ScopePlan, wanted: Mapping[int, None]) -> ScopePlan:
    """The scope with these summations outermost."""
    return replace(scope, sums=tuple(sorted(scope.sums, key=lambda k: k not in wanted)))
