"""Choose the iterator that runs over vector lanes, and split what is left into items."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....dialects.index import Index as Affine
from ....dialects.kernel import KernelOp, physical
from ....dialects.types import tensor_type
from ..emit.access import MOST_LOADS, Access, compute_type, lane_offsets, memory_type
from ..emit.emitter import Emitter
from ..emit.types import Index, Type, Value
from .nest import NestOperand, NestPlan, ScopePlan

# Enough slices for a few threads to share evenly; more only cost index arithmetic.
SLICES = 64
# A sum over the lanes of a vector, in memory operations.
HORIZONTAL_COST = 8


def result_access(op: KernelOp, plan: NestPlan, pointer: Value) -> Access:
    """Where the last scope's values are stored."""
    strides, offset, _ = physical(op.type)
    flat = Affine(offset)
    for e, stride in zip(plan.root.here, strides, strict=True):
        flat += e * stride
    return Access(pointer, op.type.element_type, flat)


def vector_iterator(plan: NestPlan, op: KernelOp) -> int | None:
    """The shared iterator whose lanes cost least; None if a summation's lanes cost less."""
    flats = [result_address(op, plan), *(flat for _, flat in addresses(plan, op))]
    shared = [k for k in range(plan.shared) if plan.extents[k] != 1]
    costs = {k: lane_cost(flats, k, plan.extents[k]) for k in shared}
    if not costs:
        return None
    best = min(costs, key=lambda k: (costs[k], -k))
    along = min(
        (_sum_cost(flats, k, scope, plan) for scope in plan.scopes for k in scope.sums),
        default=math.inf,
    )
    return None if along < costs[best] else best


def result_address(op: KernelOp, plan: NestPlan) -> Affine:
    """The element that is stored, in the result's buffer."""
    return result_access(op, plan, Value("", memory_type(op.type.element_type))).flat


def addresses(plan: NestPlan, op: KernelOp) -> list[tuple[NestOperand, Affine]]:
    """Every read of one of the kernel's operands, and the element of its buffer."""
    types = {arg: tensor_type(v) for arg, v in zip(op.body.block.args, op.inputs, strict=True)}
    found: list[tuple[NestOperand, Affine]] = []
    for scope in plan.scopes:
        for operand in scope.reads:
            if operand.source in types:
                strides = physical(types[operand.source])[0]  # pyright: ignore
                terms = (e * s for e, s in zip(operand.index, strides, strict=True))
                found.append((operand, sum(terms, Affine(0))))
    return found


def _sum_cost(flats: Sequence[Affine], iterator: int, scope: ScopePlan, plan: NestPlan) -> float:
    """Cost per element of a summation in the lanes, of which one vector is left at each point."""
    count = math.prod(plan.extents[k] for k in scope.sums)
    return lane_cost(flats, iterator, plan.extents[iterator]) + HORIZONTAL_COST / count


def lane_cost(flats: Sequence[Affine], iterator: int, extent: int) -> float:
    """Modelled memory operations per element: 1/16 contiguous, 0 constant, 1 or more scattered."""
    total = 0.0
    for position, flat in enumerate(flats):
        if iterator not in flat.iterators:
            # A result that does not move would be written by every lane: only summations do that.
            total += 0.0 if position else 0.05
        elif flat.coefficient(iterator) == 1 and not flat.has_floor:
            total += 1 / 16
        else:
            total += _scattered_cost(flat, iterator) if position else 1.2
    waste = -(-extent // 16) * 16 / extent
    return total * min(waste, 4.0) if extent < 16 else total


def _scattered_cost(flat: Affine, iterator: int) -> float:
    """Loads of the range and shuffles, or a gather."""
    offsets = lane_offsets(flat, iterator, 16)
    if offsets is None:
        return 1.0
    loads = -(-(max(offsets) - min(offsets) + 1) // 16)
    return 2 * loads / 16 if loads <= MOST_LOADS else 1.0


def across_iterator(op: KernelOp, plan: NestPlan, vector: int, lanes: int) -> int | None:
    """The iterator along which a read, scattered over the lanes, is contiguous; None if none is."""
    if any(scope.sums for scope in plan.scopes):
        return None
    read = addresses(plan, op)
    out = result_address(op, plan)
    others = [k for k in range(plan.shared) if k != vector and plan.extents[k] != 1]

    def gain(k: int) -> int:
        reads = sum(_is_across(flat, vector, k, plan, lanes) for _, flat in read)
        return reads + _fills(out, vector, k, plan)

    best = max(others, key=gain, default=None)
    return best if best is not None and gain(best) else None


def _is_across(flat: Affine, vector: int, across: int, plan: NestPlan, lanes: int) -> bool:
    """Whether elements are neighbours across, and too far from each other along the lanes."""
    if flat.has_floor or flat.coefficient(across) != 1 or flat.coefficient(vector) == 0:
        return False
    offsets = lane_offsets(flat, vector, power_of_two(plan.extents[vector], lanes))
    far = offsets is None or max(offsets) - min(offsets) >= MOST_LOADS * lanes
    return far or _fills(flat, vector, across, plan)


def _fills(flat: Affine, vector: int, across: int, plan: NestPlan) -> bool:
    """Whether few places across are all that lies between neighbours along the lanes."""
    size = plan.extents[across]
    step = flat.coefficient(vector)
    return not flat.has_floor and flat.coefficient(across) == 1 and step == size <= MOST_LOADS


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


def widest(op: KernelOp) -> Type:
    """The element type that decides how many lanes a vector has."""
    read = [v for arg, v in zip(op.body.block.args, op.inputs, strict=True) if arg.uses]
    tensors = [*read, *(scope.result for scope in op.scopes)]
    elements = [tensor_type(v).element_type for v in tensors]
    return max((compute_type(e) for e in elements), key=lambda t: t.bits)


def power_of_two(extent: int, lanes: int) -> int:
    """Lanes for a loop: the full width, or the least power of two that holds a short loop."""
    while lanes > 1 and lanes // 2 >= extent:
        lanes //= 2
    return max(lanes, 1)
