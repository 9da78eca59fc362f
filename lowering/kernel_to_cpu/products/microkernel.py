"""Emit the register-blocked inner product that convolution and matrix product share.

A tile is some rows (output pixels, or rows of a matrix) times some vectors of output channels. Each
step broadcasts one input of every row against one vector of weights for each column:

    acc[row][v] += input[rows[row] + k * depth_stride] * weights[k * weight_stride + v * lanes]

A step of bytes takes several neighbours at once (`Numbers`): then `depth` counts steps.

Weights are read from memory once for each panel, and a single block keeps only a few lines in
flight: products of small images and large weights ran at half the peak. So the blocks that share
a panel prefetch the next one, each a part of it, in step with their own work (`PrefetchShare`).

All accumulators stay in registers, so rows * vectors + vectors + 1 of them must exist.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..emit.emitter import Emitter
from ..emit.types import I64, Index, Type, Value, constant
from .numbers import FLOATS, Numbers

# Two multiply-add units, each with a latency of four cycles, are busy with this many sums.
SUMS_IN_FLIGHT = 8
# Registers kept for what a step multiplies: a broadcast input and vectors of weights.
OPERAND_REGISTERS = 4


@dataclass(frozen=True)
class RegisterTile:
    """Describe one register block.

    Units: offsets and strides count elements. `taps` are loops around the innermost, each a count
    and its input stride; weights advance without a gap through all of them. `valid` is how many of
    the columns exist if weights are not padded. `chains` splits each sum to hide the latency of
    additions in a small block. `fetch` is the number of cache lines of later weights that a
    step prefetches. `tail` is how many neighbours the last step takes, if fewer than the others.
    """

    rows: tuple[int, ...]  # input offset of each row
    vectors: int  # of a row
    lanes: int  # of a vector
    depth: Index  # steps of the innermost loop
    weight_stride: int  # from one row of words to the next
    depth_stride: int = 1  # of the input, likewise
    taps: tuple[tuple[int, int], ...] = ()
    unroll: int = 1  # steps per loop iteration
    chains: int = 1
    valid: int | None = None
    fetch: int = 0
    tail: int = 0
    numbers: Numbers = FLOATS

    @property
    def vector(self) -> Type:
        """Give the type of one accumulator, and of one vector of weights."""
        return self.numbers.total.vector(self.lanes)

    @property
    def size(self) -> int:
        """Count the accumulators of one chain."""
        return len(self.rows) * self.vectors

    def lanes_of(self, vector: int) -> int:
        """Count the columns of `vector` that exist."""
        if self.valid is None:
            return self.lanes
        return min(self.lanes, self.valid - vector * self.lanes)


@dataclass(frozen=True)
class Reads:
    """Pointers to a tile's operands: its inputs, its weights.

    Units: `ahead` is the distance, in elements, from `weights` to the weights that are prefetched.
    """

    source: Value
    weights: Value
    ahead: Index = 0


@dataclass(frozen=True)
class PrefetchShare:
    """Divide a panel of `vectors` among the `passes` blocks that read the panel before it."""

    vectors: int
    lanes: int
    passes: int

    @property
    def lines(self) -> int:
        """Count the vectors that a step of a block prefetches."""
        return -(-self.vectors // self.passes)

    def distance(self, b: Emitter, panel: Index, block: Index, steps: Index) -> Index:
        """Return the distance from a block's weights to the part of the next panel it prefetches.

        The next panel begins `panel` elements away. Blocks beyond the last part prefetch what they
        read themselves (distance 0).

        Units: `steps` is the number of steps of a block, and of rows in the panel.
        """
        offset = b.mul(b.mul(steps, self.lines * self.lanes), block)
        parts = -(-self.vectors // self.lines)
        if self.passes <= parts:
            return b.add(panel, offset)
        distance = b.value(b.add(panel, offset), I64)
        return b.select(b.compare("lt", block, parts), distance, 0)


def starts_of(b: Emitter, tile: RegisterTile, weights: Value, steps: int) -> list[Value] | None:
    """Return the initial sums: the packed row of weights behind the last step; None for zeros."""
    if not tile.numbers.start:
        return None
    rows = steps * tile.numbers.words
    columns = [
        b.load(tile.vector, weights, rows * tile.weight_stride + v * tile.lanes)
        for v in range(tile.vectors)
    ]
    return columns * len(tile.rows)


Inner = Callable[[Emitter, RegisterTile, Reads, list[Value]], list[Value]]
"""Emits the innermost loop: (b, tile, reads, sums) to new sums."""


def accumulate(
    b: Emitter,
    tile: RegisterTile,
    reads: Reads,
    initial: Sequence[Value] | None = None,
    inner: Inner | None = None,
) -> list[Value]:
    """Emit the sums of a tile, row by row, on top of `initial` (zero if not given).

    `inner` replaces the innermost loop, for tiles whose rows are not broadcast.
    """
    zeros = [constant(tile.vector, 0)] * tile.size
    start = [*(initial or zeros), *(zeros * (tile.chains - 1))]
    sums = _taps(b, tile, reads, start, tile.taps, inner or depth_loop)
    total = sums[: tile.size]
    for chain in range(1, tile.chains):
        part = sums[chain * tile.size : (chain + 1) * tile.size]
        total = [b.add(x, y) for x, y in zip(total, part, strict=True)]
    return total


def _taps(
    b: Emitter,
    tile: RegisterTile,
    reads: Reads,
    sums: list[Value],
    taps: Sequence[tuple[int, int]],
    inner: Inner,
) -> list[Value]:
    if not taps:
        return inner(b, tile, reads, sums)
    (count, stride), others = taps[0], taps[1:]
    if count == 1:
        return _taps(b, tile, reads, sums, others, inner)
    assert isinstance(tile.depth, int)
    rows = math.prod(n for n, _ in others) * tile.depth * tile.numbers.words
    fetched = rows * (tile.fetch * tile.lanes - tile.weight_stride)
    with b.fold(0, count, sums, unroll=1) as loop:
        tap_reads = Reads(
            b.address(tile.numbers.data, reads.source, b.mul(loop.index, stride)),
            b.address(tile.vector, reads.weights, b.mul(loop.index, rows * tile.weight_stride)),
            b.add(reads.ahead, b.mul(loop.index, fetched)) if tile.fetch else 0,
        )
        loop.next(_taps(b, tile, tap_reads, loop.values, others, inner))
    return loop.results


def depth_loop(b: Emitter, tile: RegisterTile, reads: Reads, sums: list[Value]) -> list[Value]:
    """Emit the innermost loop, then the remaining steps."""
    if tile.tail:
        assert isinstance(tile.depth, int)
        last = tile.depth - 1
        sums = depth_loop(b, replace(tile, depth=last, tail=0), reads, sums)
        return _step(b, tile, reads, last, 0, sums, tile.tail)
    rounds: Index = 0
    if not isinstance(tile.depth, int) or tile.depth >= 2 * tile.unroll:
        full_rounds, _ = b.split(tile.depth, tile.unroll)
        rounds = b.mul(full_rounds, tile.unroll)
        with b.fold(0, rounds, sums, tile.unroll, unroll=1) as loop:
            inner = loop.values
            for step in range(tile.unroll):
                inner = _step(b, tile, reads, b.add(loop.index, step), step, inner)
            loop.next(inner)
        sums = loop.results
    if isinstance(rounds, int) and isinstance(tile.depth, int):
        for step in range(rounds, tile.depth):
            sums = _step(b, tile, reads, step, step - rounds, sums)
        return sums
    if tile.unroll == 1:
        return sums
    with b.fold(rounds, tile.depth, sums, unroll=1) as loop:
        loop.next(_step(b, tile, reads, loop.index, 0, loop.values))
    return loop.results


def _step(
    b: Emitter,
    tile: RegisterTile,
    reads: Reads,
    k: Index,
    step: int,
    sums: Sequence[Value],
    count: int = 0,
) -> list[Value]:
    """One step; `count` is how many neighbours it takes, if fewer than others."""
    result = list(sums)
    base = step % tile.chains * tile.size
    words = tile.numbers.words
    of_words = [_columns(b, tile, reads, b.add(b.mul(k, words), word)) for word in range(words)]
    for row, offset in enumerate(tile.rows):
        at = b.add(b.mul(k, tile.depth_stride), offset)
        spread = tile.numbers.spread(b, reads.source, at, tile.lanes, count)
        for part, columns in zip(spread, of_words, strict=True):
            for v, column in enumerate(columns):
                place = base + row * tile.vectors + v
                result[place] = tile.numbers.multiplied(b, part, column, result[place])
    return result


def _columns(b: Emitter, tile: RegisterTile, reads: Reads, row: Index) -> list[Value]:
    """Load row `row` of the weights' words, and prefetch the step's share of later weights."""
    row_of = b.mul(row, tile.weight_stride)
    columns = [
        b.load(tile.vector, reads.weights, b.add(row_of, v * tile.lanes), mask=tile.lanes_of(v))
        for v in range(tile.vectors)
    ]
    if tile.fetch:
        fetched = b.address(tile.vector, reads.weights, reads.ahead)
        line_of = b.mul(row, tile.fetch * tile.lanes)
        for line in range(tile.fetch):
            b.prefetch(tile.vector.element, fetched, b.add(line_of, line * tile.lanes))
    return columns


def chains_for(size: int, registers: int) -> int:
    """Choose how many chains of `size` accumulators keep both multiply-add units busy."""
    chains_to_hide_latency = -(-SUMS_IN_FLIGHT // size)
    return max(1, min(chains_to_hide_latency, (registers - OPERAND_REGISTERS) // size))
