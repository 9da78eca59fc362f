"""Rows: scopes that share outer loops and run one after the other at each point of these.

So softmax, norms and other reductions with elementwise work before and after them are computed.

Lanes are along rows and along sums. Rows lie on the stack, or in registers (held_rows.py); where
neighbouring points lie side by side, lanes are points (rows_across.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects.kernel import KernelOp
from ...dialects.nest import (
    REGISTERS,
    STACK,
    AccumulateOp,
    AllocOp,
    ForOp,
    LoadOp,
    NestOp,
    PrefetchOp,
    is_local,
)
from ...dialects.types import byte_size, is_float, tensor_type
from ..kernel_to_cpu.emit.access import lane_offsets
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.lanes import power_of_two, result_address
from ..kernel_to_cpu.nests.nest import NestPlan, ScopePlan
from ..kernel_to_cpu.nests.nontemporal import LEAST_BYTES_OF_LOOPS, streamed
from . import rewrites
from .build import Site, empty_nest
from .extremes import vectorise_extreme
from .guards import cut_inside, guarded
from .held_rows import can_be_held
from .inlined import inline_rows
from .point_sums import CHAINS, PointSums, cut_vectors, inner_loops, loop_path, sink
from .reductions import take_lanes, vectorise_reduction
from .row_scopes import RowBuilder, ScopeLoops

# Values of a maximum from which on a check of their sum costs less than keeping NaN.
LEAST_CHECKED = 4
# Written out whole, a row would be kept in more registers than there are.
UNROLL = 4
# Reads of vectors in a row that is written out, not a loop.
MAX_READS = 256
# Points that are interleaved, what their rows may take of the first-level cache, and the largest
# result for which they are: beyond a second-level cache of 2 MiB rows are read while the last is
# stored.
TOGETHER = 2
MOST_BYTES = 32 << 10
MAX_RESULT = 1 << 21
# Limit for the rows of all points that are interleaved.
MOST_STACK = 1 << 17


@dataclass
class PlainRows:
    """A nest of scopes at points without a schedule.

    Attributes:
        shared: the loops that all scopes share.
        made: the loops of each scope.
        starts: the first op of each stage after the first.
    """

    nest: NestOp
    shared: list[ForOp] = field(default_factory=list[ForOp])
    made: list[ScopeLoops] = field(default_factory=list[ScopeLoops])
    starts: list[Operation] = field(default_factory=list[Operation])


def plain_rows(op: KernelOp, plan: NestPlan, space: StringAttr, lanes: int) -> PlainRows:
    """Loops over points, and at each the scopes; rows are in buffers of so many lanes."""
    found = PlainRows(empty_nest(op))
    builder, site = RowBuilder(op, plan, found.nest, space, lanes), Site(found.nest.body.block)
    if plan.root.own:
        out = result_address(op, plan)
        builder.nontemporal = streamed(op.type, out, plan.root.own[-1])
    for k in range(plan.shared):
        if plan.extents[k] != 1:
            loop, site = site.loop(k, plan.extents[k], "parallel")
            found.shared.append(loop)
    for stage in stages(plan.scopes):
        before = site.block.last_op
        found.made += [builder.scope(site, scope) for scope in stage]
        if before is not None:
            found.starts.append(_first_part(before))
    return found


@dataclass(frozen=True)
class RowsSchedule:
    """How rows are run.

    Attributes:
        lanes: of a vector.
        turns: points that are interleaved, so that none waits for a sum.
        unroll: vectors of one iteration along a row.
        chains: totals of a sum.
    """

    lanes: int
    turns: int
    unroll: int
    chains: int


def default_rows(op: KernelOp, plan: NestPlan, lanes: int) -> RowsSchedule:
    """The schedule of a model."""
    turns = TOGETHER if TOGETHER in possible_turns(plan, lanes) and _take_turns(op, plan) else 1
    return RowsSchedule(lanes, turns, UNROLL, CHAINS)


def possible_turns(plan: NestPlan, lanes: int) -> list[int]:
    """How many points can be interleaved: their rows lie on the stack."""
    shared = [plan.extents[k] for k in range(plan.shared) if plan.extents[k] != 1]
    if can_be_held(plan, lanes) or not shared or len(stages(inline_rows(plan).scopes)) < 2:
        return [1]
    size = _row_bytes(plan)
    return [n for n in (1, 2, 3, 4) if n == 1 or (n <= shared[-1] and n * size <= MOST_STACK)]


def rows(op: KernelOp, plan: NestPlan, isa: Isa, chosen: RowsSchedule) -> NestOp:
    """Points in parallel, some taking turns; rows in vectors, sums in the lanes of chains."""
    lanes = chosen.lanes
    held = can_be_held(plan, lanes)
    plan = plan if held else inline_rows(plan)
    plain = plain_rows(op, plan, REGISTERS if held else STACK, lanes)
    sums = [found for found in plain.made if found.sums and not _along_scalars(found)]
    if held and plain.shared and _is_far(op):
        for found in plain.made:
            _ask_for_next(found.own[-1], plain.shared[-1])
    elif not held and plain.shared and chosen.turns > 1:
        _turns(plain.shared[-1], plain.starts, chosen.turns)
    for found in plain.made:
        if found.own:
            _along_row(found.own[-1], lanes, held, chosen.unroll)
    for found in sums:
        _along_sum(op, found, isa, chosen)
    return plain.nest


def stages(scopes: Sequence[ScopePlan]) -> list[list[ScopePlan]]:
    """The scopes up to each summation, and the rest."""
    stages: list[list[ScopePlan]] = [[]]
    for scope in scopes:
        stages[-1].append(scope)
        if scope.sums and not scope.own:
            stages.append([])
    return [stage for stage in stages if stage]


def _first_part(before: Operation) -> Operation:
    """The first op after another that stays where it is when buffers move out of a loop."""
    op = before.next_op
    while isinstance(op, AllocOp):
        op = op.next_op
    assert op is not None
    return op


def _take_turns(op: KernelOp, plan: NestPlan) -> bool:
    """Whether points are interleaved, so that none waits for a sum: their rows must lie in L1."""
    return _row_bytes(plan) * TOGETHER <= MOST_BYTES and byte_size(op.type) <= MAX_RESULT


def _row_bytes(plan: NestPlan) -> int:
    """Bytes of the rows of one point, and of what it reads."""
    counts = [math.prod(plan.extents[k] for k in scope.own) for scope in plan.scopes]
    return 8 * max(counts) + sum(4 * n for n in counts[:-1] if n > 1)


def _turns(loop: ForOp, starts: Sequence[Operation], turns: int) -> None:
    """Several points up to each sum over a row."""
    outer, inner = rewrites.split_bound(loop, turns)
    rewrites.mark(outer, "parallel")
    for part in rewrites.distribute(inner, starts):
        rewrites.mark(part, "serial", unroll=1)


def _along_row(loop: ForOp, lanes: int, held: bool, unroll: int) -> None:
    """Run the innermost of a row's own loops in vectors, one by one if their lanes need that."""
    width = lanes if held else power_of_two(loop.size, lanes)
    for part in [loop] if held else cut_inside(loop, width):
        if held or _is_written_out(part, width):
            _write_out(part, width)
        elif inner_loops(part):
            PointSums(width).vectors(part)
        else:
            rewrites.vectorise(part, width, unroll)


def _is_written_out(loop: ForOp, width: int) -> bool:
    """Whether lanes lie at other distances in each vector of a row: known ones, without a loop."""
    reads = [op for op in loop.walk() if isinstance(op, LoadOp) and loop.iterator in op.places]
    taps = math.prod(k.size for path in map(loop_path, inner_loops(loop)) for k in path)
    if loop.size // width * taps * len(reads) > MAX_READS:
        return False
    return any(
        lane_offsets(op.indices[0], list(op.places).index(loop.iterator), width) is None
        for op in reads
    )


def _write_out(loop: ForOp, width: int) -> None:
    for _, lane in cut_vectors(loop, width):
        paths = [loop_path(inner) for inner in inner_loops(lane)]
        sink(lane)
        for path in paths:
            PointSums(width).reduce(path, 1, written=False)


def _is_far(op: KernelOp) -> bool:
    """Whether a read is of more than caches hold.

    Measured on rows of 256: a maximum from memory has 60 % of a copy's speed with the check of its
    sum, 87 % without, from the third-level cache 110 % with and 70 % without.
    """
    return any(byte_size(tensor_type(v)) >= LEAST_BYTES_OF_LOOPS for v in op.inputs)


def _ask_for_next(row: ForOp, point: ForOp) -> None:
    """Prefetch what the next point reads: a row in registers is more instructions than a processor
    has in flight, so it would not read the next."""
    reads = [op for op in row.walk() if isinstance(op, LoadOp) and not is_local(op.buffer)]
    for op in (op for op in reads if point.iterator in op.places):
        places = list(op.places)
        step = op.indices[0].coefficient(places.index(point.iterator))
        rewrites.insert_before(op, PrefetchOp(op.buffer, places, op.indices[0] + step))


def _along_scalars(found: ScopeLoops) -> bool:
    """Reduce one by one what no loop reads along memory; False where one does.

    This comes before points are interleaved: each has several totals of its own.
    """
    if any(map(_contiguous, found.sums)):
        return False
    PointSums(1).reduce(found.sums, 1, written=False)
    return True


def _along_sum(op: KernelOp, found: ScopeLoops, isa: Isa, chosen: RowsSchedule) -> None:
    """Run a sum at a point in the lanes of vectors, along memory."""
    along = max(found.sums, key=lambda loop: (_contiguous(loop), loop.size))
    order = [*(loop for loop in found.sums if loop is not along), along]
    rewrites.reorder(order)
    taken, width = along.block.last_op, power_of_two(along.size, chosen.lanes)
    assert isinstance(taken, AccumulateOp)
    if _is_checked(op, found, isa):
        vectorise_extreme(order[0], along, width, chosen.chains)
        return
    kind, total, places, at = found.scope.reduction, taken.buffer, list(taken.places), taken.indices
    made = vectorise_reduction(along, width, chosen.chains, order[0])
    lane = take_lanes(kind, made.totals[total], total, places, at[0], width)
    rewrites.insert_after(made.last, lane)


def _contiguous(loop: ForOp) -> int:
    """How many reads in a loop go from neighbour to neighbour."""
    reads = [op for op in loop.walk() if isinstance(op, LoadOp) and loop.iterator in op.places]
    lanes = [lane_offsets(op.indices[0], list(op.places).index(loop.iterator), 2) for op in reads]
    return lanes.count((0, 1))


def _is_checked(op: KernelOp, found: ScopeLoops, isa: Isa) -> bool:
    """Whether a maximum is taken as if there were no NaN first, which is then checked."""
    return (
        found.scope.reduction in ("max", "min")
        and not isa.keeps_nan
        and is_float(tensor_type(found.scope.op.result).element_type)
        and math.prod(loop.size for loop in found.sums) >= LEAST_CHECKED
        and not _is_far(op)
        and not any(access.guards for access in guarded(found.sums[0].block))
    )
