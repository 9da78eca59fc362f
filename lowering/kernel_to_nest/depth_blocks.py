"""Rewrites of a product's register blocks: blocks of depth, and panels that are fetched ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects.index import Index
from ...dialects.nest import STACK, AllocOp, ForOp, IfOp, LoadOp, PrefetchOp, StoreOp, loop_of
from . import rewrites


@dataclass(frozen=True)
class Tile:
    """A kind of register block: the loops over panels, over blocks of rows (`first` stand before
    them) and, within one, over k."""

    panel: ForOp
    block: ForOp
    first: int
    deep: ForOp


@dataclass(frozen=True)
class Item:
    """The loops over items, and how much one holds: panels of so many vectors, blocks of rows."""

    group: ForOp
    chunk: ForOp
    panels: int
    row_blocks: int
    vectors: int

    def number(self, tile: Tile, places: list[SSAValue]) -> Index:
        """A block's number among the item's blocks of rows."""
        places += [p for p in (tile.block.iterator, self.chunk.iterator) if p not in places]
        terms = [(tile.block.iterator, 1), (self.chunk.iterator, -self.row_blocks)]
        return rewrites.linear(places, terms, tile.first)

    def slot(self, tile: Tile, places: list[SSAValue]) -> Index:
        """A register block's number among the item's."""
        places += [tile.panel.iterator, self.group.iterator]
        terms = [(tile.panel.iterator, 1), (self.group.iterator, -self.panels)]
        return rewrites.linear(places, terms) * self.row_blocks + self.number(tile, places)


def block_depth(item: Item, tiles: Sequence[Tile], size: int, depth: int, lanes: int) -> None:
    """Run an item for one block of k after the other; its totals rest on the stack meanwhile.

    The sums must be taken in the order of k within a register block, which they are: each goes on
    from where it was left.
    """
    blocks = -(-size // depth)
    largest = max(_elements(_total(tile)) for tile in tiles)
    sums = AllocOp(
        _total_type(tiles[0]).element_type, item.panels * item.row_blocks * largest, STACK
    )
    turns = ForOp(blocks, unroll=1, hint="kb")
    rewrites.move_ops(item.group.block.ops, turns.block)
    item.group.block.add_ops([sums, turns])
    for tile in tiles:
        total, deep = _total(tile), tile.deep
        ops = [op for op in tile.block.block.ops if op is not total]
        rewrites.substitute(deep.iterator, [(turns.iterator, depth), (deep.iterator, 1)])
        rewrites.resize(deep, depth)
        rewrites.substitute(deep.iterator, [(deep.iterator, 1)])  # simpler, now that it is shorter
        if size % depth:
            deep.replace_places([turns.iterator], [Index(size) - Index.iterator(0) * depth])
        first = IfOp([turns.iterator], [(Index.iterator(0), 1)])
        last = IfOp([turns.iterator], [(Index.iterator(0) - (blocks - 1), 1)])
        at = ops.index(deep)
        rewrites.move_ops(ops[:at], first.then.block)
        rewrites.move_ops(ops[at + 1 :], last.then.block)
        rewrites.insert_before(deep, first)
        rewrites.insert_after(deep, last)
        places: list[SSAValue] = []
        slot = item.slot(tile, places) * largest
        count = _elements(total) // lanes
        first.otherwise.block.add_op(
            _copied(sums.result, total.result, (places, slot), (count, lanes), restores=True)
        )
        last.otherwise.block.add_op(
            _copied(total.result, sums.result, (places, slot), (count, lanes), restores=False)
        )


def _total(tile: Tile) -> AllocOp:
    return next(op for op in tile.block.block.ops if isinstance(op, AllocOp))


def _total_type(tile: Tile) -> MemRefType:  # pyright: ignore[reportMissingTypeArgument]
    type_ = _total(tile).result.type
    assert isinstance(type_, MemRefType)
    return type_


def _elements(total: AllocOp) -> int:
    assert isinstance(total.result.type, MemRefType)
    (count,) = total.result.type.get_shape()
    return count


def _copied(
    source: SSAValue,
    target: SSAValue,
    slot: tuple[list[SSAValue], Index],
    size: tuple[int, int],
    *,
    restores: bool,
) -> ForOp:
    """Copy so many vectors of totals from their slot, or there."""
    (count, lanes), (places, first) = size, slot
    vector, lane = ForOp(count, "unrolled"), ForOp(lanes, "vector", lanes)
    vector.block.add_op(lane)
    here = [vector.iterator, lane.iterator]
    local = Index.iterator(0) * lanes + Index.iterator(1)
    there = [*places, *here]
    far = first + rewrites.linear(there, [(vector.iterator, lanes), (lane.iterator, 1)])
    if restores:
        read = LoadOp(source, there, far)
        write = StoreOp(read.result, target, here, local)
    else:
        read = LoadOp(source, here, local)
        write = StoreOp(read.result, target, there, far)
    lane.block.add_ops([read, write])
    return vector


def fetch_panels(
    item: Item,
    tiles: Sequence[Tile],
    weights: SSAValue,
    step: tuple[int, int],
    passes: int,
) -> None:
    """Ask for the panel after the one that is read, each of `passes` blocks of rows for a part.

    Args:
        step: rows of a panel, lanes of a vector.
    """
    depth, lanes = step
    lines = -(-item.vectors // passes)
    busy = -(-item.vectors // lines)
    for tile in tiles:
        read = next(
            op for op in tile.deep.walk() if isinstance(op, LoadOp) and op.buffer is weights
        )
        places = [p for p in read.places if loop_of(p).kind.data in ("serial", "parallel")]
        images = [
            Index.iterator(places.index(p))
            if p in places and p is not tile.deep.iterator
            else Index(0)
            for p in read.places
        ]
        panel = read.indices[0].substitute(images)
        number = item.number(tile, places)
        places += [p for p in (tile.deep.iterator,) if p not in places]
        row = rewrites.linear(places, [(tile.deep.iterator, lines * lanes)])
        ahead = number * (depth * lines * lanes) + depth * item.vectors * lanes
        guards = [] if passes <= busy else [(number, busy)]
        first = tile.deep.block.first_op
        assert first is not None
        for line in range(lines):
            address = panel + ahead + row + line * lanes
            rewrites.insert_before(first, PrefetchOp(weights, places, address, guards))
