"""Generate `kernel.tiled_product`: transform, product and inverse for a block of tiles at a time.

    for each block of tiles (an item):
        transform the tiles:    v[position][tile][channel], on the stack
        for each block of features:
            for each position of a tile:
                for each panel of the block: m[position][tile][feature] = v u, in registers
            transform back, with what follows, and store

V and the block of M stay in the second-level cache. Weights are read once for each block of tiles,
in packed order; each panel is prefetched while the one before it is multiplied.

The schedule's `tile` is that of the second transform; `tiles` is the number in a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ....dialects.algebra import ScopeOp
from ....dialects.errors import UserError
from ....dialects.index import Index as Affine
from ....dialects.index import iterators, row_major_strides
from ....dialects.kernel import KernelOp, TiledProductOp
from ....dialects.program import where
from ....dialects.scalars import Read, factors
from ....dialects.schedule import tile_of, tiles_of
from ....dialects.types import Array, tensor_type
from ..code_cache import cached_code
from ..emit.emitter import Emitter
from ..emit.module import KernelCode, Module, kernel
from ..emit.types import F32, I64, PTR, Index, Value
from ..isa import Isa
from ..kernel_call import Argument, KernelCall
from ..nests.nest import Buffers
from ..nests.tiles import StageTarget, Tiles, Tiling, literals_of
from .blocks import Panel, balanced, block_loops, cut_panels, each_kind
from .gemm_spec import GemmSpec
from .gemm_spec import candidates as gemm_schedules
from .microkernel import PrefetchShare, Reads, RegisterTile, accumulate, chains_for

# Limit for a block's transformed tiles and products, on the stack and in the second-level cache.
BLOCK_BYTES = 704 << 10
# A thread's stack has several times as much wherever isoform runs.
MOST_BYTES = 2 << 20
# Columns of M that are made before they are transformed back.
FEATURES = 64
# Rows of a register block: twice as many were no faster, half as many read weights too often.
BLOCK_TILES = 14
# Blocks wanted, so that a few threads share them evenly.
LEAST_ITEMS = 8
# Padding between the positions of a buffer, in elements: else all fall into one cache set.
GAP = 16


@dataclass(frozen=True)
class Stages:
    """The scopes of a tiled product, by stage; `data` and `weights` are its operands.

    out[n, f, tile.., position..] = sum over c of data[n, c, block.., tile.., position..] *
    weights[f, block.., c, position..], and over the blocks that a window of many taps is cut into.
    """

    before: tuple[ScopeOp, ...]  # the transform of the tiles
    product: ScopeOp
    data: Read
    weights: Read
    after: tuple[ScopeOp, ...]  # the inverse, and the ops after it


def match_stages(op: KernelOp) -> Stages | None:
    """Find the product among the scopes of a kernel; None without one, or without a transform."""
    scopes = op.scopes
    for at, scope in enumerate(scopes):
        pair = _factors(scope, {s.result for s in scopes[:at]})
        if pair is not None and 0 < at < len(scopes) - 1:
            return Stages(tuple(scopes[:at]), scope, *pair, tuple(scopes[at + 1 :]))
    return None


def _factors(scope: ScopeOp, made: set[SSAValue]) -> tuple[Read, Read] | None:
    """The transformed tiles and the weights of a product; None for any other scope."""
    reads = factors(scope.expr())
    rank, odd = divmod(len(scope.traversal) - 2, 2)
    if reads is None or len(reads) != 2 or odd or rank < 1 or not scope.summation:
        return None
    if scope.reduction.data != "sum" or tensor_type(scope.result).element_type != f32:
        return None
    n, f, *its = iterators(len(scope.extents))
    positions, (*blocks, c) = its[: 2 * rank], its[2 * rank :]
    left, right = (n, c, *blocks, *positions), (f, *blocks, c, *positions[rank:])
    for data, weights in (reads, reads[::-1]):
        positions = (_plain(data.index, scope), _plain(weights.index, scope))
        wanted = (_plain(left, scope), _plain(right, scope))
        if data.source in made and weights.source not in made and positions == wanted:
            return data, weights
    return None


def _plain(index: Sequence[Affine], scope: ScopeOp) -> tuple[Affine, ...]:
    """An index with iterators of extent 1 set to 0."""
    images = [Affine(0) if n == 1 else Affine.iterator(k) for k, n in enumerate(scope.extents)]
    return tuple(e.substitute(images) for e in index)


def block_tiles(tiles: int, positions: int, channels: int, features: int) -> int:
    """Choose the number of tiles in a block; 0 if blocks do not fit, or are too few to share."""
    size = 4 * positions * (channels + min(features, FEATURES)) * BLOCK_TILES
    return BLOCK_TILES if size <= BLOCK_BYTES and tiles >= LEAST_ITEMS * BLOCK_TILES else 0


def lower_tiled_product(
    op: TiledProductOp, constants: dict[SSAValue, Array], isa: Isa
) -> list[KernelCall]:
    """The one call that computes it."""
    stages = match_stages(op)
    if stages is None:
        raise UserError("these scopes are not a product of tiles", where=where(op))
    made = _TiledProduct(op, stages, isa)
    number = list(op.body.block.args).index(stages.weights.source)  # pyright: ignore
    weights = constants.get(op.inputs[number])
    if weights is None:
        raise UserError("a tiled product's weights must be constant", where=where(op))
    arguments = [Argument(value) for value in (*op.inputs, op.result)]
    arguments[number] = Argument(data=made.pack(weights))
    return [KernelCall(cached_code(op, isa, (), made.emit), tuple(arguments))]


class _TiledProduct:
    """The state that every part of the emission needs."""

    def __init__(self, op: TiledProductOp, stages: Stages, isa: Isa) -> None:
        self.op, self.stages, self.isa = op, stages, isa
        self.module = Module()
        self.lanes = isa.lanes(F32)
        n, self.features, *sides = stages.product.traversal
        self.grid, self.side = sides[: len(sides) // 2], sides[len(sides) // 2 :]
        *self.blocks, self.channels = stages.product.summation
        self.depth = math.prod(stages.product.summation)
        self.tiles, self.positions = n * math.prod(self.grid), math.prod(self.side)
        self.sizes = balanced(self.tiles, self._block())
        most = self.sizes[0]
        schedule = self._schedule(most)
        self.rows, vectors = schedule
        self.panels = cut_panels(self.features, vectors, self.lanes)
        self.panel_count = sum(kind.count for kind in self.panels)
        self.vectors = sum(kind.count * kind.vectors for kind in self.panels)
        self.together = max(1, min(self.panel_count, FEATURES // (vectors * self.lanes)))
        self.width = min(self.together * vectors, self.vectors) * self.lanes
        # Elements from one position of a tile to the next, of V and of M.
        self.v_step = most * self.depth + GAP
        self.m_step = most * self.width + GAP
        if 4 * self.positions * (self.v_step + self.m_step) > MOST_BYTES:
            raise UserError("a block of tiles is too large", where=where(op), hint="fewer `tiles`")
        self.data = self._transform()
        self.inverse = self._inverse()

    def _block(self) -> int:
        found = tiles_of(self.op)
        return BLOCK_TILES if found is None else max(1, found)

    def _schedule(self, rows: int) -> tuple[int, int]:
        """The register block, as for a product of this many rows (few rows differ)."""
        strides = ((self.depth, 1), (self.features, 1), (self.features, 1))
        spec = GemmSpec((), max(rows, 6), self.features, self.depth, *strides)
        best = gemm_schedules(spec, self.isa, constant_b=True)[0]
        return best.rows, best.vectors

    def _transform(self) -> Tiles:
        image, lane, *strides = _strides(self.side, self.grid, self.v_step, self.depth)
        steps = (self.channels * n for n in row_major_strides([*self.blocks, 1])[:-1])
        tile = (1, 1, *self.blocks, *(1 for _ in self.grid), *self.side)
        target = StageTarget(f32, (image, lane, *steps, *strides))
        return Tiles(Tiling(self.stages.before, tile), target, literals_of(self.op), self.isa)

    def _inverse(self) -> Tiles:
        tile = tile_of(self.op)
        if tile is None:
            raise UserError("a tiled product needs a `tile`", where=where(self.op))
        self.m_strides = _strides(self.side, self.grid, self.m_step, self.width)
        target = StageTarget.of(self.op, self.isa)
        return Tiles(Tiling(self.stages.after, tile), target, literals_of(self.op), self.isa)

    def pack(self, weights: Array) -> Array:
        """Reorder weights into panels in the order of use, padded with zeros to whole vectors.

        Shapes: (f, block.., c, position..) to one flat array laid out as
        [block of features][position][panel][block.., c][lanes of the panel].
        """
        positions_last = weights.reshape(self.features, self.depth, self.positions)
        matrices = positions_last.transpose(2, 1, 0)
        gap = self.vectors * self.lanes - self.features
        padded = np.pad(matrices, ((0, 0), (0, 0), (0, gap)))
        packed: list[Array] = []
        for low in range(0, self.vectors * self.lanes, self.width):
            block = padded[:, :, low : low + self.width]
            step = self.panels[0].vectors * self.lanes
            for position in block:
                packed += [
                    position[:, k : k + step].ravel() for k in range(0, position.shape[1], step)
                ]
        return np.concatenate(packed).astype(np.float32, copy=False)

    def emit(self) -> KernelCode:
        """Emit the kernel. Arguments: the operands in order, weights packed, then the result."""

        def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
            v = b.reserve(F32, self.positions * self.v_step)
            m = b.reserve(F32, self.positions * self.m_step)
            with b.loop(low, high, unroll=1) as item:
                first, count = self._tiles_of(b, item)
                with self._wanted(b, pointers, first):
                    self._item(b, pointers, (v, m), first, count)

        return kernel(self.module, len(self.op.inputs) + 1, len(self.sizes), body)

    def _tiles_of(self, b: Emitter, item: Index) -> tuple[Index, Index]:
        """The first tile of a block, and how many it has."""
        size = self.sizes[-1]
        larger = self.sizes.count(size + 1)
        first = b.add(b.mul(item, size), b.minimum(item, larger) if larger else 0)
        count: Index = size
        if larger:
            count = b.select(b.compare("lt", item, larger), b.value(size + 1, I64), size)
        return first, count

    @contextmanager
    def _wanted(self, b: Emitter, pointers: Sequence[Value], first: Index) -> Generator[None]:
        """What is emitted inside runs if the image of a block's first tile is read.

        Tiles are numbered image by image, so no later one is read then either.
        """
        operand = dict(self.op.rows_read).get(0)
        if operand is None:
            yield
            return
        image = b.split(first, math.prod(self.grid))[0]
        with b.when(b.compare("lt", b.value(image, I64), b.load(I64, pointers[operand]))):
            yield

    def _item(
        self,
        b: Emitter,
        pointers: list[Value],
        stacked: tuple[Value, Value],
        first: Index,
        count: Index,
    ) -> None:
        """A block of tiles."""
        v, m = stacked
        arguments = list(self.op.body.block.args)
        types = {arg: tensor_type(x) for arg, x in zip(arguments, self.op.inputs, strict=True)}
        addresses: dict[SSAValue, Value] = dict(zip(arguments, pointers[:-1], strict=True))
        behind = b.add(first, count)
        # Stages number tiles through the image: their buffers start before the block's by this
        # much.
        start = b.address(F32, v, b.sub(0, b.mul(first, self.depth)))
        operands = Buffers(addresses, types)  # pyright: ignore
        self.data.emit(b, operands, start, first, behind)
        weights = addresses[self.stages.weights.source]
        blocks = -(-self.panel_count // self.together)
        with b.loop(0, blocks, unroll=1) as block:
            last = b.compare("eq", block, blocks - 1)

            def fetch(position: Index, last: Value = last) -> None:
                with b.when(last):
                    self._fetch(b, operands, behind, count, position)

            self._products(b, (v, weights, m), block, count, fetch)
            low = b.mul(block, self.width)
            high = b.minimum(b.add(low, self.width), self.features)
            back = b.add(b.mul(first, self.width), low)
            product = self.stages.product.result
            inner = Buffers(
                {**addresses, product: b.address(F32, m, b.sub(0, back))},
                types,  # pyright: ignore
                local={product: self.m_strides},
            )
            self.inverse.emit(b, inner, pointers[-1], first, behind, (low, high))

    def _fetch(
        self, b: Emitter, operands: Buffers, first: Index, count: Index, position: Index
    ) -> None:
        """Prefetch the next block's tiles at a position, while this block's is multiplied.

        Columns that a tile shares with the next one are left to that one.
        """
        tile = tile_of(self.op)
        assert tile is not None
        wide = [dim for dim, positions in enumerate(self.side) if positions > 1]
        at: list[Index] = []
        for dim in reversed(wide[1:]):
            position, rest = b.split(position, self.side[dim])
            at.insert(0, rest)
        at.insert(0, position)
        with (
            b.when(b.compare("lt", at[-1], tile[2 + wide[-1]])),
            b.loop(first, b.add(first, count), unroll=1) as number,
        ):
            self.data.fetch(b, operands, number, at, len(self.blocks))

    def _products(
        self,
        b: Emitter,
        pointers: tuple[Value, Value, Value],
        block: Index,
        count: Index,
        fetch: Callable[[Index], None],
    ) -> None:
        """All positions of a block of tiles by a block of features; `fetch` runs once for each."""
        v, weights, m = pointers
        whole = self.panels[0].vectors
        first = b.mul(block, self.together)
        before = b.mul(first, whole)
        panels = b.minimum(b.sub(self.panel_count, first), self.together)
        vectors = b.minimum(b.sub(self.vectors, before), self.together * whole)
        step = self.depth * self.lanes
        with b.loop(0, self.positions, unroll=1) as position:
            fetch(position)
            source = b.address(F32, v, b.mul(position, self.v_step))
            target = b.address(F32, m, b.mul(position, self.m_step))
            behind = b.add(b.mul(before, self.positions), b.mul(position, vectors))
            with b.loop(0, panels, unroll=1) as panel:
                offset = b.mul(panel, whole)
                here = b.address(F32, weights, b.mul(b.add(behind, offset), step))
                out = b.address(F32, target, b.mul(offset, self.lanes))

                def work(
                    kind: Panel, here: Value = here, source: Value = source, out: Value = out
                ) -> None:
                    self._panel(b, kind, (source, here, out), count)

                each_kind(b, self.panels, b.add(first, panel), work)

    def _panel(
        self, b: Emitter, kind: Panel, pointers: tuple[Value, Value, Value], count: Index
    ) -> None:
        """All rows of a block of tiles by a panel; blocks are of one or two sizes."""
        for size in sorted(set(self.sizes)):
            if len(set(self.sizes)) == 1:
                self._rows(b, kind, pointers, size)
            else:
                with b.when(b.compare("eq", count, size)):
                    self._rows(b, kind, pointers, size)

    def _rows(
        self, b: Emitter, kind: Panel, pointers: tuple[Value, Value, Value], size: int
    ) -> None:
        source, weights, target = pointers
        blocks = balanced(size, self.rows)
        fetch = PrefetchShare(kind.vectors, self.lanes, len(blocks))

        def work(number: Index, rows: int, row: Index) -> None:
            panel = self.depth * kind.vectors * self.lanes
            ahead = b.value(fetch.distance(b, panel, number, self.depth), I64)
            name = self.module.once(
                f"block {kind.vectors} {rows} {fetch.lines}",
                lambda name: self._block_function(kind, rows, fetch, name),
            )
            left = b.address(F32, source, b.mul(row, self.depth))
            right = b.address(F32, target, b.mul(row, self.width))
            b.call(name, None, [left, weights, right, ahead])

        block_loops(b, blocks, None, work)

    def _block_function(self, kind: Panel, rows: int, fetch: PrefetchShare, name: str) -> None:
        chains = chains_for(rows * kind.vectors, self.isa.registers)
        tile = RegisterTile(
            rows=tuple(row * self.depth for row in range(rows)),
            vectors=kind.vectors,
            lanes=self.lanes,
            depth=self.depth,
            weight_stride=kind.vectors * self.lanes,
            unroll=chains,
            chains=chains,
            fetch=fetch.lines,
        )
        with self.module.function(name, [PTR, PTR, PTR, I64], attributes="noinline") as b:
            source, weights, target, ahead = b.parameters
            sums = accumulate(b, tile, Reads(source, weights, ahead))
            for at, value in enumerate(sums):
                row, vector = divmod(at, kind.vectors)
                b.store(value, target, row * self.width + vector * self.lanes)


def _strides(side: Sequence[int], grid: Sequence[int], position: int, tile: int) -> tuple[int, ...]:
    """Strides of [n, c, tile.., at..] with adjacent tiles, channels last."""
    image, *tiles = (tile * n for n in row_major_strides([1, *grid]))
    return (image, 1, *tiles, *(position * n for n in row_major_strides(side)))
