"""Schedules of tiled contractions: tile sizes per level, read from the op or chosen by a model.

The loops have the order SSSRRSRS (Ansor's multi-level tiling). Results are tiled over blocks,
virtual threads and threads; then comes the depth, in steps that are fetched together; within a step
outer depth, inner results, inner depth, innermost results. The number of blocks and of steps
follows from the shape. The other sizes are the schedule:

    schedule {tile_rows = array<i64: 2, 16, 1, 4>, tile_columns = array<i64: 2, 16, 1, 4>,
              tile_depth = array<i64: 16, 1>, vector = 4 : i64, unroll = 16 : i64}

is 128 x 128 results a block (virtual threads x threads x inner x innermost), 16 deep a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute

from ...dialects.errors import UserError
from ...dialects.kernel import KernelOp
from ...dialects.program import where

Level4 = tuple[int, int, int, int]

# The model's assumptions about a device: an A100 and an H100 are near.
MULTIPROCESSORS = 120
RESIDENT_THREADS = 1024
BUSY_THREADS = 256
# A load from shared memory costs as much as this many multiplications.
LOAD_COST = 2.0
# Fetching one element of a tile: its address and bounds, the load, the store to shared memory.
FETCH_COST = 8.0
SHARED_BYTES = 48 << 10
MAX_SUMS = 128
# Elements that a thread of a default tiling holds between fetching and storing them: with 8 x 8
# sums, more would spill.
MAX_FETCHED = 24


@dataclass(frozen=True)
class TileSizes:
    """Tile sizes: (virtual threads, threads, inner, innermost) of rows and columns, depth (outer,
    inner), the width of vector loads, and how many depth steps are unrolled."""

    rows: Level4
    columns: Level4
    depth: tuple[int, int] = (16, 1)
    vector: int = 4
    unroll: int = 16

    @property
    def block_rows(self) -> int:
        """Rows of a block's tile."""
        v, t, i, j = self.rows
        return v * t * i * j

    @property
    def block_columns(self) -> int:
        """Columns of a block's tile."""
        v, t, i, j = self.columns
        return v * t * i * j

    @property
    def step(self) -> int:
        """The depth that is fetched together."""
        return self.depth[0] * self.depth[1]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows[1] * self.columns[1]

    @property
    def sums(self) -> int:
        """Results of one thread."""
        return self.block_rows * self.block_columns // self.threads

    @property
    def fetched(self) -> int:
        """Elements of a step that one thread fetches."""
        return -(-(self.block_rows + self.block_columns) * self.step // self.threads)

    def shared_bytes(self, width: int) -> int:
        """Two stages of both tiles, rows padded against bank conflicts."""
        padded = self.block_rows + PAD + self.block_columns + PAD
        return 2 * self.step * padded * width


# Padding between rows of a tile in shared memory: keeps float4 aligned, shifts banks by 4.
PAD = 4


def tiling_of(
    op: KernelOp, rows: int, columns: int, depth: int, batch: int, width: int
) -> TileSizes:
    """The op's schedule, else the default for the shape.

    Raises:
        UserError: the schedule is malformed or asks for more than a block has.
    """
    wanted = {} if op.schedule is None else op.schedule.data
    chosen = default_tiling(rows, columns, depth, batch, width)
    names = ("tile_rows", "tile_columns", "tile_depth", "vector", "unroll")
    if not any(name in wanted for name in names):
        return chosen
    down = _levels(op, wanted.get("tile_rows"), chosen.rows)
    across = _levels(op, wanted.get("tile_columns"), chosen.columns)
    outer, inner = _levels(op, wanted.get("tile_depth"), chosen.depth)
    found = TileSizes(
        (down[0], down[1], down[2], down[3]),
        (across[0], across[1], across[2], across[3]),
        (outer, inner),
        _number(wanted.get("vector"), chosen.vector),
        _number(wanted.get("unroll"), chosen.unroll),
    )
    _check(op, found, width)
    return found


def _levels(op: KernelOp, attribute: Attribute | None, default: tuple[int, ...]) -> tuple[int, ...]:
    if attribute is None:
        return default
    if not isinstance(attribute, DenseArrayBase):
        raise UserError("tile sizes are array<i64: ...>", where=where(op), found=attribute)
    sizes = tuple(int(n) for n in attribute.get_values())
    if len(sizes) != len(default) or min(sizes) < 1:
        expected = f"{len(default)} sizes from 1 up"
        raise UserError("tile sizes do not fit", where=where(op), expected=expected, found=sizes)
    return sizes


def _number(attribute: Attribute | None, default: int) -> int:
    return attribute.value.data if isinstance(attribute, IntegerAttr) else default


def _check(op: KernelOp, tiling: TileSizes, width: int) -> None:
    if tiling.threads > 1024:
        raise UserError("a block has at most 1024 threads", where=where(op), found=tiling.threads)
    if tiling.shared_bytes(width) > SHARED_BYTES:
        raise UserError(
            "the tiles do not fit shared memory",
            where=where(op),
            expected=f"at most {SHARED_BYTES} bytes",
            found=tiling.shared_bytes(width),
        )
    if tiling.sums > MAX_SUMS:
        raise UserError(
            "a thread cannot keep so many results in registers",
            where=where(op),
            expected=f"at most {MAX_SUMS}",
            found=tiling.sums,
        )
    if tiling.vector not in (1, 4):
        raise UserError("vectors are of 1 or 4", where=where(op), found=tiling.vector)
    if tiling.unroll < 1:
        raise UserError("unroll counts from 1", where=where(op), found=tiling.unroll)


def default_tiling(rows: int, columns: int, depth: int, batch: int, width: int = 4) -> TileSizes:
    """The fastest tiling by the model below; on a tie, the first of `candidates`.

    The model's numbers were not measured on a device.
    """
    step = min(16, 1 << max(2, (depth - 1).bit_length()))
    found = [
        t
        for t in candidates(step)
        if t.shared_bytes(width) <= SHARED_BYTES and t.fetched <= MAX_FETCHED
    ]
    return min(found, key=lambda t: modelled(t, rows, columns, batch))


def candidates(step: int) -> Iterator[TileSizes]:
    """Tilings of 64 to 256 threads with 1 x 1 to 8 x 8 results each."""
    for threads in (256, 128, 64):
        for across in (32, 16, 8, 4):
            for high in (8, 4, 2, 1):
                for wide in (8, 4, 2, 1):
                    yield TileSizes(
                        tile_sizes(threads // across, high),
                        tile_sizes(across, wide),
                        (step, 1),
                        4,
                        step,
                    )


def tile_sizes(threads: int, results: int) -> Level4:
    """Results of a thread in runs of four, the runs a tile of threads apart."""
    innermost = min(results, 4)
    return (results // innermost, threads, 1, innermost)


def modelled(tiling: TileSizes, rows: int, columns: int, batch: int) -> float:
    """Time in multiplications of one multiprocessor.

    Waves of blocks times the work of a block for one step of the depth: a multiplication for each
    result, its share of loads from shared memory, and fetching both tiles. With fewer threads than
    hide latency, it is proportionally longer.
    """
    blocks = _count(rows, tiling.block_rows) * _count(columns, tiling.block_columns) * batch
    waves = _count(blocks, MULTIPROCESSORS)
    high, wide = (a[0] * a[2] * a[3] for a in (tiling.rows, tiling.columns))
    loads = 1 + LOAD_COST * (1 / high + 1 / wide)
    resident = min(waves, max(1, RESIDENT_THREADS // tiling.threads)) * tiling.threads
    latency = max(1.0, BUSY_THREADS / resident)
    results = tiling.block_rows * tiling.block_columns
    fetched = tiling.block_rows + tiling.block_columns
    return waves * (results * loads + fetched * FETCH_COST) * latency


def _count(extent: int, tile: int) -> int:
    return -(-extent // tile)


def tile_text(sizes: Sequence[int]) -> str:
    """Sizes for a comment."""
    return " x ".join(map(str, sizes))
