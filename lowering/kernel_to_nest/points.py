"""Points: scopes that share all loops, one of them in the lanes of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects.index import Index
from ...dialects.kernel import KernelOp
from ...dialects.nest import ForOp, LoadOp, NestOp, StoreOp
from ...dialects.nest_access import integer
from ..kernel_to_cpu.emit.access import lane_offsets
from ..kernel_to_cpu.nests.lanes import SLICES, power_of_two, result_address
from ..kernel_to_cpu.nests.nest import NestPlan
from ..kernel_to_cpu.nests.nontemporal import LEAST_VECTORS, LINE, is_peeled, streamed
from ..kernel_to_cpu.nests.points import TILE_VECTORS
from . import rewrites
from .build import Builder, Site, Unsupported, empty_nest
from .guards import assume_inside, cut_inside, inside_lanes, regions


def plain_points(op: KernelOp, plan: NestPlan) -> tuple[NestOp, dict[int, ForOp], StoreOp]:
    """The nest without a schedule: (it, the loop of each iterator, the store of the result).

    Raises:
        Unsupported: a scope sums.
    """
    nest = empty_nest(op)
    builder = Builder(op, plan, nest)
    site, loops = Site(nest.body.block), dict[int, ForOp]()
    for k in range(plan.shared):
        if plan.extents[k] != 1:
            loops[k], site = site.loop(k, plan.extents[k])
    for scope in plan.scopes:
        if scope.sums:
            raise Unsupported("points with summations")
        site.values[scope.op.result] = builder.body(site, scope)
    return nest, loops, builder.store(site, site.values[plan.root.op.result])


def points(op: KernelOp, plan: NestPlan, vector: int, lanes: int) -> NestOp:
    """As many outer loops in parallel as make 64 items, vectors innermost.

    Raises:
        Unsupported: a scope sums.
    """
    out = result_address(op, plan)
    width = power_of_two(plan.extents[vector], lanes)
    nest, loops, store = plain_points(op, plan)
    order = sorted((k for k in loops if k != vector), key=lambda k: -out.coefficient(k))
    rewrites.reorder([loops[k] for k in (*order, vector)])
    count = 1
    for k in order:
        if count >= SLICES:
            break
        rewrites.mark(loops[k], "parallel")
        count *= loops[k].size
    lane = loops[vector]
    runs = [lane]
    if count < SLICES and lane.size > width * TILE_VECTORS:
        share = -(-lane.size * count // SLICES)
        tile = max(TILE_VECTORS * width, -(-share // width) * width)
        outer, runs = rewrites.split_branch(lane, tile)
        rewrites.mark(outer, "parallel")
    shifted = is_peeled(op.type, out, vector, lane.size, width)
    store_nontemporal(store, streamed(op.type, out, vector))
    for run in runs:
        for region in regions(run):
            if not shifted or not peel(region, width):
                for part in cut_inside(region, width):
                    rewrites.vectorise(part, width)
    return nest


def store_nontemporal(store: StoreOp, piece: int) -> None:
    """Let a store go past the caches, in vectors aligned to so many bytes; 0: it does not."""
    store.properties["nontemporal"] = integer(piece)


def peel(loop: ForOp, lanes: int) -> bool:
    """Store whole lines of a row past the caches, its ends plainly.

    False where it is short, or the lanes of a read are not known places apart.
    """
    (store,) = (op for op in loop.block.ops if isinstance(op, StoreOp))
    low, high = inside_lanes(loop)
    inside = high - low >= LEAST_VECTORS * lanes
    if not inside:  # a part of a row, say, anywhere in it: guards stay
        low, high = 0, loop.size
    places = [p for p in store.places if p is not loop.iterator]
    images = [Index.iterator(places.index(p)) if p in places else Index(low) for p in store.places]
    first = store.indices[0].substitute(images)
    # Counted in common steps, so that floors of reads are seen to go with the lanes.
    step = math.gcd(lanes, low, first.constant, *(c for _, c in first.terms))
    if high - low < LEAST_VECTORS * lanes or _is_scattered(loop, lanes, step):
        return False
    begin = -(first // step) % (lanes // step) * step + low
    whole = (high - begin) // lanes
    end = begin + whole * lanes
    counts = -(-(low + lanes - 1) // lanes), -(-(loop.size - high + lanes - 1) // lanes)
    _piece(loop, places, (counts[0], lanes), Index(0), begin)
    middle = _piece(loop, places, ((high - low) // lanes, lanes), begin, None, whole)
    if inside:
        assume_inside(middle)
    for op in middle.block.ops:
        if isinstance(op, StoreOp):
            store_nontemporal(op, LINE)
    _piece(loop, places, (counts[1], lanes), end, loop.size - end)
    rewrites.erase(loop)
    return True


def _is_scattered(loop: ForOp, lanes: int, step: int) -> bool:
    """Whether lanes of a read are not always as far apart, in vectors at multiples of `step`."""
    reads = (op for op in loop.block.ops if isinstance(op, LoadOp) and loop.iterator in op.places)
    return any(
        lane_offsets(op.indices[0], list(op.places).index(loop.iterator), lanes, step) is None
        for op in reads
        if op.indices[0].has_floor
    )


def _piece(
    loop: ForOp,
    places: Sequence[SSAValue],
    sizes: tuple[int, int],
    start: Index,
    count: Index | None,
    whole: Index | None = None,
) -> ForOp:
    """A copy of a loop before it, as at most (vectors, lanes) of `sizes`, from a place on.

    Args:
        places: what `start`, the count of places, and the number of vectors are over.
    """
    upper = [] if whole is None else [whole]
    run, lane = ForOp(sizes[0], upper=upper, places=places if upper else []), loop.clone()
    rewrites.insert_before(loop, run)
    run.block.add_op(lane)
    rewrites.resize(rewrites.mark(lane, "vector", sizes[1]), sizes[1])
    vector = Index.iterator(len(places)) * sizes[1]
    over = [*places, run.iterator]
    image = start + vector + Index.iterator(len(over))
    rewrites.substitute_index(lane.iterator, [*over, lane.iterator], image)
    if count is not None:
        lane.replace_places(over, [count - vector])
    return lane
