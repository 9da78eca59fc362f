"""Points whose reads and stores lie along different iterators: blocks transposed in registers.

One iterator runs over the lanes, another one *across* them: a block is some vectors of neighbours
across. A read that is contiguous across is loaded so and transposed; where the block is all there
is across, as the channels of a picture are, what it reads or stores is one range of memory, and is
taken apart or put together by shuffles.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.index import Index
from ...dialects.kernel import KernelOp
from ...dialects.nest import ForOp, LoadOp, NestOp, StoreOp
from ...dialects.types import byte_size
from ..kernel_to_cpu.emit.access import MOST_LOADS, memory_type
from ..kernel_to_cpu.nests.lanes import power_of_two, result_address
from ..kernel_to_cpu.nests.nest import NestPlan
from ..kernel_to_cpu.nests.nontemporal import LEAST_BYTES, LINE, is_peeled, streamed
from . import rewrites, staging
from .points import plain_points
from .shifted_rows import put_together

# Vectors of a strip: what is written side by side before the next places across. Results past the
# caches in rows longer than that have strips of one.
STRIP = 16
# Places across that are written before the next strip: whole cache lines of what is read.
CHUNK = 64
# Places ahead at which what is read is asked for. What follows a block of a strip lies in another
# row, often in another page: the processor does not ask for it itself.
AHEAD_ACROSS = 32


@dataclass(frozen=True)
class TransposedSchedule:
    """How transposed points are run.

    Attributes:
        strip: vectors of a strip.
        chunk: places across that are written before the next strip.
        ahead: places ahead at which what is read is asked for; 0 is nowhere.
    """

    strip: int
    chunk: int
    ahead: int


def default_transposed(op: KernelOp, plan: NestPlan, vector: int, lanes: int) -> TransposedSchedule:
    """The schedule of a model."""
    size, width = plan.extents[vector], power_of_two(plan.extents[vector], lanes)
    line = width * memory_type(op.type.element_type).bytes == LINE
    nontemporal = line and streamed(op.type, result_address(op, plan), vector) == LINE
    # Lines that go past the caches need no neighbours; a strip's reads would evict each other.
    strip = 1 if nontemporal and size > STRIP * width else STRIP
    asks = byte_size(op.type) >= LEAST_BYTES and size <= strip * width
    return TransposedSchedule(strip, CHUNK, AHEAD_ACROSS if asks else 0)


def transposed_points(
    op: KernelOp,
    plan: NestPlan,
    vector: int,
    across: int,
    lanes: int,
    chosen: TransposedSchedule,
) -> NestOp:
    """Blocks of a vector by places across, read along these; strips of blocks in parallel."""
    out = result_address(op, plan)
    width = power_of_two(plan.extents[vector], lanes)
    nest, loops, store = plain_points(op, plan)
    others = [k for k in loops if k not in (vector, across)]
    order = sorted(others, key=lambda k: -out.coefficient(k))
    rewrites.reorder([loops[k] for k in (*order, across, vector)])
    for k in order:
        rewrites.mark(loops[k], "parallel")
    rows, lane = loops[across], loops[vector]
    dense = any(_is_dense(access, rows, lane) for access in (store, *_reads(lane)))
    line = width * memory_type(op.type.element_type).bytes == LINE
    if line and not dense and is_peeled(op.type, out, vector, lane.size, width):
        numbers = {loop.iterator: Index.iterator(k) for k, loop in loops.items()}
        reads = [
            (read.buffer, read.indices[0].substitute([numbers[p] for p in read.places]))
            for read in _reads(lane)
            if _is_staged(read, rows, lane, (width, lanes))
        ]
        for run, column in put_together(loops, (across, vector), out, width, reads):
            _stage_block(run, column, lanes)
        return nest
    nontemporal = line and streamed(op.type, out, vector) == LINE
    rewrites.store_nontemporal(store, LINE if nontemporal else 0)
    block = rows.size if dense else width
    tile = max(1, chosen.chunk // block), chosen.strip
    for run, column in _blocks(rows, (block, width), tile):
        _stage_block(run, column, lanes, chosen.ahead)
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


def _is_staged(load: LoadOp, rows: ForOp, lane: ForOp, lanes: tuple[int, int]) -> bool:
    """Whether a read is along the rows, far from lane to lane: of a vector, and of a register."""
    down, along = _steps(load, rows, lane)
    far = abs(along) * (lanes[0] - 1) >= MOST_LOADS * lanes[1]
    plain = not load.guards and not load.indices[0].has_floor
    return down == 1 and plain and (far or _is_dense(load, rows, lane))


def _stage_block(rows: ForOp, lane: ForOp, lanes: int, ahead: int = 0) -> None:
    """Read a block along its rows where these are neighbours in memory; write it so, too.

    Args:
        ahead: how many rows further on what is read is asked for; 0 is nowhere.
    """
    for load in _reads(lane):
        if not _is_staged(load, rows, lane, (lane.width, lanes)):
            continue
        if ahead:
            staging.ask_ahead(load, rows, lane, ahead)
        if _is_dense(load, rows, lane):
            staging.stage_dense(load, rows, lane)
        else:
            staging.stage_transposed(load, rows, lane)
    for store in [op for op in lane.block.ops if isinstance(op, StoreOp)]:
        if _is_dense(store, rows, lane):
            staging.stage_dense_store(store, rows, lane)
    rewrites.mark(rows, "unrolled")
