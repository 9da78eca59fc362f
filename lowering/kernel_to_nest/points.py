"""Points: scopes that share all loops, one of them in the lanes of vectors."""

from __future__ import annotations

from ...dialects.kernel import KernelOp
from ...dialects.nest import ForOp, NestOp, StoreOp
from ...dialects.nest_access import integer
from ..kernel_to_cpu.nests.lanes import SLICES, power_of_two, result_address
from ..kernel_to_cpu.nests.nest import NestPlan
from ..kernel_to_cpu.nests.nontemporal import is_peeled, streamed
from ..kernel_to_cpu.nests.points import TILE_VECTORS
from . import rewrites
from .build import Builder, Site, Unsupported, empty_nest
from .guards import specialise


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
        Unsupported: rows of a large result that no line starts with; a scope sums.
    """
    out = result_address(op, plan)
    width = power_of_two(plan.extents[vector], lanes)
    if is_peeled(op.type, out, vector, plan.extents[vector], width):
        raise Unsupported("rows past the caches whose ends are stored plainly")
    nest, loops, store = plain_points(op, plan)
    order = sorted((k for k in loops if k != vector), key=lambda k: -out.coefficient(k))
    rewrites.reorder([loops[k] for k in (*order, vector)])
    store_nontemporal(store, streamed(op.type, out, vector))
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
    for run in runs:
        for part in specialise(run, width):
            rewrites.vectorise(part, width)
    return nest


def store_nontemporal(store: StoreOp, piece: int) -> None:
    """Let a store go past the caches, in vectors aligned to so many bytes; 0: it does not."""
    store.properties["nontemporal"] = integer(piece)
