"""Emit the register-blocked inner product that convolution and matrix product share.

A tile is some rows (output pixels, or rows of a matrix) times some vectors of output channels. Each
step broadcasts one input of every row against one vector of weights for each column:

    acc[row][v] += input[rows[row] + k * depth_stride] * weights[k * weight_stride + v * lanes]

All accumulators stay in registers, so rows * vectors + vectors + 1 of them must exist.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .emit import Emitter
from .types import F32, Index, Type, Value, constant

# How far before their use packed weights are fetched. They come from memory, once for each panel:
# a block loads only a few lines ahead of itself, and what the processor guesses is not enough.
AHEAD = 2048


@dataclass(frozen=True)
class Tile:
    """Describe one register block.

    Units: offsets and strides count elements. `taps` are loops around the innermost, each a count
    and its input stride; weights advance without a gap through all of them. `valid` is how many of
    the columns exist where weights are not padded. `chains` splits each sum to hide the latency of
    an addition when the block is small. `ahead` is how far before their use weights are fetched, 0
    for not at all.
    """

    rows: tuple[int, ...]
    vectors: int
    lanes: int
    depth: Index
    weight_stride: int
    depth_stride: int = 1
    taps: tuple[tuple[int, int], ...] = ()
    unroll: int = 1
    chains: int = 1
    valid: int | None = None
    ahead: int = 0

    @property
    def vector(self) -> Type:
        """Give the type of one accumulator."""
        return F32.vector(self.lanes)

    @property
    def size(self) -> int:
        """Count the accumulators, chains apart."""
        return len(self.rows) * self.vectors

    def lanes_of(self, vector: int) -> int:
        """Count the columns of `vector` that exist."""
        if self.valid is None:
            return self.lanes
        return min(self.lanes, self.valid - vector * self.lanes)


Inner = Callable[[Emitter, Tile, Value, Value, list[Value]], list[Value]]
"""Emits the innermost loop: (b, tile, source, weights, sums) to new sums."""


def accumulate(
    b: Emitter,
    tile: Tile,
    source: Value,
    weights: Value,
    initial: Sequence[Value] | None = None,
    inner: Inner | None = None,
) -> list[Value]:
    """Emit the sums of a tile, row by row, on top of `initial` (zero if not given).

    `inner` replaces the innermost loop, for tiles whose rows are not broadcast.
    """
    zeros = [constant(tile.vector, 0.0)] * tile.size
    start = [*(initial or zeros), *(zeros * (tile.chains - 1))]
    sums = _taps(b, tile, source, weights, start, tile.taps, inner or depth_loop)
    total = sums[: tile.size]
    for chain in range(1, tile.chains):
        part = sums[chain * tile.size : (chain + 1) * tile.size]
        total = [b.add(x, y) for x, y in zip(total, part, strict=True)]
    return total


def _taps(
    b: Emitter,
    tile: Tile,
    source: Value,
    weights: Value,
    sums: list[Value],
    taps: Sequence[tuple[int, int]],
    inner: Inner,
) -> list[Value]:
    if not taps:
        return inner(b, tile, source, weights, sums)
    (count, stride), others = taps[0], taps[1:]
    if count == 1:
        return _taps(b, tile, source, weights, sums, others, inner)
    assert isinstance(tile.depth, int)
    span = math.prod(n for n, _ in others) * tile.depth * tile.weight_stride
    with b.fold(0, count, sums, unroll=1) as loop:
        moved = b.address(F32, source, b.mul(loop.index, stride))
        panel = b.address(F32, weights, b.mul(loop.index, span))
        loop.next(_taps(b, tile, moved, panel, loop.values, others, inner))
    return loop.results


def depth_loop(
    b: Emitter, tile: Tile, source: Value, weights: Value, sums: list[Value]
) -> list[Value]:
    """Emit the innermost loop, then the steps that do not fill a round."""
    rounds: Index = 0
    if not isinstance(tile.depth, int) or tile.depth >= 2 * tile.unroll:
        whole, _ = b.split(tile.depth, tile.unroll)
        rounds = b.mul(whole, tile.unroll)
        with b.fold(0, rounds, sums, tile.unroll, unroll=1) as loop:
            inner = loop.values
            for step in range(tile.unroll):
                inner = _step(b, tile, source, weights, b.add(loop.index, step), step, inner)
            loop.next(inner)
        sums = loop.results
    if isinstance(rounds, int) and isinstance(tile.depth, int):
        for step in range(rounds, tile.depth):
            sums = _step(b, tile, source, weights, step, step - rounds, sums)
        return sums
    if tile.unroll == 1:
        return sums
    with b.fold(rounds, tile.depth, sums, unroll=1) as loop:
        loop.next(_step(b, tile, source, weights, loop.index, 0, loop.values))
    return loop.results


def _step(
    b: Emitter,
    tile: Tile,
    source: Value,
    weights: Value,
    k: Index,
    turn: int,
    sums: Sequence[Value],
) -> list[Value]:
    result = list(sums)
    base = turn % tile.chains * tile.size
    row_of = b.mul(k, tile.weight_stride)
    columns = [
        b.load(tile.vector, weights, b.add(row_of, v * tile.lanes), mask=tile.lanes_of(v))
        for v in range(tile.vectors)
    ]
    for v in range(tile.vectors if tile.ahead else 0):
        b.prefetch(F32, weights, b.add(row_of, tile.ahead + v * tile.lanes))
    for row, offset in enumerate(tile.rows):
        scalar = b.load(F32, source, b.add(b.mul(k, tile.depth_stride), offset))
        spread = b.broadcast(scalar, tile.lanes)
        for v, column in enumerate(columns):
            at = base + row * tile.vectors + v
            result[at] = b.fma(spread, column, result[at])
    return result


def chains_for(size: int, registers: int) -> int:
    """Choose how many chains of `size` accumulators keep both multiply-add units busy."""
    wanted = -(-8 // size)
    return max(1, min(wanted, (registers - 4) // size))
