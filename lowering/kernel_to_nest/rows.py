"""Rows: scopes that share outer loops, and come one after the other at each point of these."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1
from xdsl.ir import Operation, SSAValue

from ...dialects.index import Index, row_major_strides
from ...dialects.kernel import LoopsOp
from ...dialects.nest import (
    STACK,
    AccumulateOp,
    AllocOp,
    ForOp,
    LoadOp,
    NestOp,
    StoreOp,
    WhenOp,
)
from ...dialects.types import byte_size, is_bool, is_float, is_half, tensor_type
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.lanes import power_of_two, result_address
from ..kernel_to_cpu.nests.nest import NestPlan, ScopePlan
from ..kernel_to_cpu.nests.nontemporal import LEAST_BYTES_OF_LOOPS, streamed
from ..kernel_to_cpu.nests.reduction import CHAINS, LEAST_CHECKED
from ..kernel_to_cpu.nests.stack_rows import MOST_BYTES, MOST_RESULT, TOGETHER, UNROLL, stages
from . import rewrites
from .build import Builder, Site, Unsupported, empty_nest
from .reductions import take_lanes, vectorise_reduction


def rows(op: LoopsOp, plan: NestPlan, isa: Isa, lanes: int) -> NestOp:
    """Points in parallel, two taking turns; rows in vectors, sums in the lanes of chains.

    Raises:
        Unsupported: sums within rows, over several loops, or not along memory; rows of bools, or
            read elsewhere than where they were made; half floats between scopes.
    """
    nest = empty_nest(op)
    builder = _Rows(op, plan, nest, lanes)
    site, shared = Site(nest.body.block), list[ForOp]()
    for k in range(plan.shared):
        if plan.extents[k] != 1:
            loop, site = site.loop(k, plan.extents[k], "parallel")
            shared.append(loop)
    starts: list[Operation] = []
    for stage in stages(plan.scopes):
        before = site.block.last_op
        for scope in stage:
            builder.scope(site, scope)
        if before is not None:
            starts.append(_first_part(before))
    if shared and _take_turns(op, plan):
        outer, inner = rewrites.split_bound(shared[-1], TOGETHER)
        rewrites.mark(outer, "parallel")
        for part in rewrites.distribute(inner, starts):
            rewrites.mark(part, "serial", unroll=1)
    for loop in builder.loops:
        rewrites.vectorise(loop, power_of_two(loop.size, lanes), UNROLL)
    for loop, scope in builder.sums:
        _vectorise_sum(loop, scope, power_of_two(loop.size, lanes), _is_checked(op, scope, isa))
    return nest


def _first_part(before: Operation) -> Operation:
    """The first op after another that stays where it is when buffers move out of a loop."""
    op = before.next_op
    while isinstance(op, AllocOp):
        op = op.next_op
    assert op is not None
    return op


def _take_turns(op: LoopsOp, plan: NestPlan) -> bool:
    """Whether points take turns, so that none waits for a sum: their rows must lie in L1."""
    counts = [math.prod(plan.extents[k] for k in scope.own) for scope in plan.scopes]
    size = 8 * max(counts) + sum(4 * n for n in counts[:-1] if n > 1)
    small = size * TOGETHER <= MOST_BYTES and byte_size(op.type) <= MOST_RESULT
    return small and len(stages(plan.scopes)) > 1


class _Rows(Builder):
    """Scopes at a point of the shared loops; `loops` along rows and `sums` become vectors."""

    def __init__(self, op: LoopsOp, plan: NestPlan, nest: NestOp, lanes: int):
        super().__init__(op, plan, nest)
        self.loops_op, self.padding = op, lanes
        self.loops: list[ForOp] = []
        self.sums: list[tuple[ForOp, ScopePlan]] = []
        if any(is_bool(tensor_type(s.op.result).element_type) for s in plan.scopes[:-1]):
            raise Unsupported("rows of bools")
        if any(is_half(tensor_type(s.op.result).element_type) for s in plan.scopes[:-1]):
            raise Unsupported("half floats between rows")

    def scope(self, site: Site, scope: ScopePlan) -> None:
        """One scope: what it makes stays in a local buffer, or is the kernel's result."""
        if scope.own:
            self._own_loops(site, scope)
            return
        loops = self.keep(site, scope)
        if loops and (len(loops) > 1 or not _along_memory(loops[0])):
            raise Unsupported("sums over several loops, or not along memory")
        self.sums += [(loop, scope) for loop in loops]

    def _own_loops(self, site: Site, scope: ScopePlan) -> None:
        """A scope with loops of its own; its row is on the stack, a whole number of vectors."""
        if scope.sums:
            raise Unsupported("sums within rows")
        last, *outer = [self.plan.extents[k] for k in reversed(scope.own)]
        sizes = [*reversed(outer), -(-last // self.padding) * self.padding]
        strides = row_major_strides(sizes)
        place = sum(
            (Index.iterator(k) * s for k, s in zip(scope.own, strides, strict=True)), Index(0)
        )
        row = AllocOp(tensor_type(scope.op.result).element_type, math.prod(sizes), STACK)
        if scope is not self.plan.root:
            site.add(row)
        for k in scope.own:
            loop, site = site.loop(k, self.plan.extents[k])
        self.loops.append(loop)  # pyright: ignore[reportPossiblyUnboundVariable]
        value = self.body(site, scope)
        if scope is self.plan.root:
            out = result_address(self.loops_op, self.plan)
            self.store(site, value, streamed(self.op.type, out, scope.own[-1]))
            return
        self.rows[scope.op.result] = row.result, place
        places, (flat,) = site.expressed(place)
        site.add(StoreOp(value, row.result, places, flat))


def _along_memory(loop: ForOp) -> bool:
    """Whether something in a loop is read from neighbour to neighbour."""
    for op in loop.block.ops:
        if isinstance(op, LoadOp) and loop.iterator in op.places:
            (address, *_), k = op.indices, list(op.places).index(loop.iterator)
            if address.coefficient(k) == 1 and not address.has_floor:
                return True
    return False


def _is_checked(op: LoopsOp, scope: ScopePlan, isa: Isa) -> bool:
    """Whether a maximum is taken as if there were no NaN first, which is then checked."""
    sizes = [byte_size(tensor_type(v)) for v in op.inputs]
    count = math.prod(scope.op.summation)
    return (
        scope.reduction in ("max", "min")
        and not isa.keeps_nan
        and is_float(tensor_type(scope.op.result).element_type)
        and count >= LEAST_CHECKED
        and max(sizes) < LEAST_BYTES_OF_LOOPS
    )


def _vectorise_sum(loop: ForOp, scope: ScopePlan, lanes: int, checked: bool) -> None:
    """A total for each lane of several vectors, taken together after the loop."""
    taken = loop.block.last_op
    assert isinstance(taken, AccumulateOp)
    kind, total = scope.reduction, taken.buffer
    places, at = list(taken.places), taken.indices[0]
    if checked:
        _vectorise_extreme(loop, kind, lanes)
        return
    found = vectorise_reduction(loop, lanes, CHAINS)
    lane = take_lanes(kind, found.totals[total], total, places, at, lanes)
    rewrites.insert_after(found.last, lane)


def _vectorise_extreme(loop: ForOp, kind: str, lanes: int) -> None:
    """The plain maximum, which may lose a NaN, and a sum of all values: where it is NaN, again."""
    taken = loop.block.last_op
    assert isinstance(taken, AccumulateOp)
    total, places, at = taken.buffer, list(taken.places), taken.indices[0]
    element = taken.value.type
    exact = loop.clone()
    check = AllocOp(element, 1)
    rewrites.insert_before(loop, check)
    taken.properties["reduction"] = StringAttr(f"numeric_{kind}")
    rewrites.insert_after(taken, AccumulateOp("sum", taken.value, check.result))
    found = vectorise_reduction(loop, lanes, CHAINS)
    made = _any_nan(found.totals[check.result], lanes)
    when = made[-1]
    assert isinstance(when, WhenOp)
    last = found.last
    for op in made:
        rewrites.insert_after(last, op)
        last = op
    when.then.block.add_op(exact)
    again = vectorise_reduction(exact, lanes, CHAINS)
    wide = again.totals[total]
    rewrites.insert_after(again.last, take_lanes(kind, wide, total, places, at, lanes))
    wide = found.totals[total]
    plain = take_lanes(f"numeric_{kind}", wide, total, places, at, lanes)
    when.otherwise.block.add_op(plain)


def _any_nan(sums: SSAValue, lanes: int) -> Sequence[Operation]:
    """Whether some lane of a vector is NaN, and a branch on it."""
    found = AllocOp(i1, 1)
    no = arith.ConstantOp(IntegerAttr(0, i1))
    lane = ForOp(lanes, "vector", lanes)
    read = LoadOp(sums, [lane.iterator], Index.iterator(0))
    nan = arith.CmpfOp(read.result, read.result, "une")
    lane.block.add_ops([read, nan, AccumulateOp("or", nan.result, found.result)])
    held = LoadOp(found.result, [], Index(0))
    start = StoreOp(no.result, found.result, [], Index(0))
    return [found, no, start, lane, held, WhenOp(held.result)]
