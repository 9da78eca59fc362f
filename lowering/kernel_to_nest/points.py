"""Points: scopes that share all loops, one of them in the lanes of vectors."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from ...dialects.kernel import LoopsOp
from ...dialects.nest import ForOp, LoadOp, NestOp, StoreOp
from ...dialects.types import byte_size
from ..kernel_to_cpu.access import MOST_LOADS, memory_type
from ..kernel_to_cpu.lanes import SLICES, power_of_two, result_address
from ..kernel_to_cpu.nest import NestPlan
from ..kernel_to_cpu.past_caches import LEAST_BYTES, LINE, is_peeled, streamed
from ..kernel_to_cpu.points import TILE_VECTORS
from ..kernel_to_cpu.transposed import AHEAD_ACROSS, CHUNK, STRIP
from . import rewrites, staging
from .build import Builder, Site, Unsupported, empty_nest
from .guards import specialise


def plain_points(op: LoopsOp, plan: NestPlan) -> tuple[NestOp, dict[int, ForOp], StoreOp]:
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


def points(op: LoopsOp, plan: NestPlan, vector: int, lanes: int) -> NestOp:
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
    _store_past_caches(store, streamed(op.type, out, vector))
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


def _store_past_caches(store: StoreOp, piece: int) -> None:
    store.properties["past_caches"] = IntegerAttr(piece, i64)


# Blocks transposed in registers


def transposed_points(op: LoopsOp, plan: NestPlan, vector: int, across: int, lanes: int) -> NestOp:
    """Blocks of a vector by places across, read along these; strips of blocks in parallel.

    Raises:
        Unsupported: rows of a large result that no line starts with; a scope sums.
    """
    out = result_address(op, plan)
    width = power_of_two(plan.extents[vector], lanes)
    if is_peeled(op.type, out, vector, plan.extents[vector], width):
        raise Unsupported("rows past the caches whose ends are stored plainly")
    nest, loops, store = plain_points(op, plan)
    others = [k for k in loops if k not in (vector, across)]
    order = sorted(others, key=lambda k: -out.coefficient(k))
    rewrites.reorder([loops[k] for k in (*order, across, vector)])
    for k in order:
        rewrites.mark(loops[k], "parallel")
    rows, lane = loops[across], loops[vector]
    dense = any(_is_dense(access, rows, lane) for access in (store, *_reads(lane)))
    block = rows.size if dense else width
    line = width * memory_type(op.type.element_type).bytes == LINE
    past_caches = line and streamed(op.type, out, vector) == LINE
    _store_past_caches(store, LINE if past_caches else 0)
    # Lines that go past the caches need no neighbours; a strip's reads would evict each other.
    strip = 1 if past_caches and lane.size > STRIP * width else STRIP
    asks = byte_size(op.type) >= LEAST_BYTES and lane.size <= strip * width
    for run, column in _blocks(rows, (block, width), (max(1, CHUNK // block), strip)):
        _stage(run, column, asks)
    return nest


def _blocks(
    rows: ForOp, block: tuple[int, int], tile: tuple[int, int]
) -> list[tuple[ForOp, ForOp]]:
    """Cut two loops of a perfect nest into blocks, so many of them to an item.

    Gives the loops (rows, lanes) of each kind of block: whole ones, and those at the ends.
    """
    found: list[tuple[ForOp, ForOp]] = []
    strips: list[ForOp] = []
    for part in rewrites.cut_at(rows, [rows.size - rows.size % block[0]]):
        outer, run = rewrites.split(part, min(block[0], part.size))
        lane = rewrites.interchange(run)
        columns: list[ForOp] = []
        for piece in rewrites.cut_at(lane, [lane.size - lane.size % block[1]]):
            column, inner = rewrites.split(piece, min(block[1], piece.size))
            found.append((rewrites.interchange(inner), rewrites.mark(inner, "vector", block[1])))
            columns.append(column)
        strips.append(rewrites.tile_together(columns, tile[1], "parallel"))
        rewrites.interchange(outer)
    for other in strips[1:]:
        rewrites.fuse(strips[0], other)
    inside = [op for op in strips[0].block.ops if isinstance(op, ForOp)]
    rewrites.tile_together(inside, tile[0], "parallel")
    rewrites.interchange(strips[0])
    return found


def _reads(lane: ForOp) -> list[LoadOp]:
    return [op for op in lane.block.ops if isinstance(op, LoadOp)]


def _steps(op: LoadOp | StoreOp, rows: ForOp, lane: ForOp) -> tuple[int, int]:
    """How far an address moves from row to row, and from lane to lane."""
    places, index = list(op.places), op.indices[0]
    found = [
        index.coefficient(places.index(loop.iterator)) if loop.iterator in places else 0
        for loop in (rows, lane)
    ]
    return found[0], found[1]


def _is_dense(op: LoadOp | StoreOp, rows: ForOp, lane: ForOp) -> bool:
    """Whether the rows are all that lies between neighbours along the lanes."""
    return _steps(op, rows, lane) == (1, rows.size) and rows.size <= MOST_LOADS


def _stage(rows: ForOp, lane: ForOp, asks: bool) -> None:
    """Read a block along its rows where these are neighbours in memory; write it so, too."""
    for load in _reads(lane):
        down, along = _steps(load, rows, lane)
        if down != 1 or not along or load.guards or load.indices[0].has_floor:
            continue
        if asks:
            staging.ask_ahead(load, rows, lane, AHEAD_ACROSS)
        if _is_dense(load, rows, lane):
            staging.stage_dense(load, rows, lane)
        else:
            staging.stage_transposed(load, rows, lane)
    (store,) = (op for op in lane.block.ops if isinstance(op, StoreOp))
    if _is_dense(store, rows, lane):
        staging.stage_dense_store(store, rows, lane)
    rewrites.mark(rows, "unrolled")
