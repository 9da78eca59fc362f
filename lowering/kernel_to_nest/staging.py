"""Rewrites that read or write a block of elements at once, along another loop than the lanes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.index import Index
from ...dialects.nest import AllocOp, ForOp, LoadOp, PrefetchOp, StoreOp, TransposeOp, loop_of
from . import rewrites
from .rewrites import insert_after, insert_before


def _element(buffer: SSAValue) -> Attribute:
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.element_type


def ask_ahead(load: LoadOp, rows: ForOp, lane: ForOp, distance: int) -> None:
    """Ask, before a loop over rows, for what a read of each lane is so many rows further on."""
    each = ForOp(lane.width, "unrolled")
    places = [each.iterator if p is lane.iterator else p for p in load.places]
    a = places.index(rows.iterator)
    kept = [p for n, p in enumerate(places) if n != a]
    images = [Index(distance) if p not in kept else Index.iterator(kept.index(p)) for p in places]
    each.block.add_op(PrefetchOp(load.buffer, kept, load.indices[0].substitute(images)))
    insert_before(rows, each)


def stage_transposed(load: LoadOp, rows: ForOp, lane: ForOp) -> None:
    """Read a block before a loop over `rows` with the loop `lane` in it, along the rows.

    Rows are neighbours in memory. A buffer in registers holds the block, transposed.
    """
    width, places = lane.width, list(load.places)
    block = AllocOp(_element(load.buffer), width * width)
    each, along = ForOp(lane.size, "unrolled"), ForOp(rows.size, "vector", width)
    each.block.add_op(along)
    swapped = {rows.iterator: along.iterator, lane.iterator: each.iterator}
    read = LoadOp(load.buffer, [swapped.get(p, p) for p in places], load.indices[0])
    at = Index.iterator(0) * width + Index.iterator(1)
    write = StoreOp(read.result, block.result, [each.iterator, along.iterator], at)
    along.block.add_ops([read, write])
    for op in (block, each, TransposeOp(block.result, width, width)):
        insert_before(rows, op)
    _read_block(load, block, rows, lane)


def stage_dense(load: LoadOp, rows: ForOp, lane: ForOp) -> None:
    """Read a block, one range of memory, before a loop over `rows` with the loop `lane` in it."""
    block = AllocOp(_element(load.buffer), lane.width * rows.size)
    insert_before(rows, block)
    for vector, address, places in _vectors(load.places, load.indices[0], rows, lane):
        lane_, at = places[-1], Index.iterator(0) + vector.constant
        read = LoadOp(load.buffer, places, address)
        _add(lane_, [read, StoreOp(read.result, block.result, [lane_], at)])
        insert_before(rows, loop_of(lane_))
    insert_before(rows, TransposeOp(block.result, lane.width, rows.size))
    _read_block(load, block, rows, lane)


def _add(place: SSAValue, ops: Sequence[Operation]) -> None:
    loop_of(place).block.add_ops(ops)


def _read_block(load: LoadOp, block: AllocOp, rows: ForOp, lane: ForOp) -> None:
    """Read the block's row in place of what it was read from."""
    at = Index.iterator(0) * lane.width + Index.iterator(1)
    made = LoadOp(block.result, [rows.iterator, lane.iterator], at)
    insert_before(load, made)
    load.result.replace_all_uses_with(made.result)
    rewrites.erase(load)


def _vectors(
    was: Sequence[SSAValue], address: Index, rows: ForOp, lane: ForOp
) -> list[tuple[Index, Index, list[SSAValue]]]:
    """The vectors of a range: (place in the block, address, iterators with the lane's last)."""
    width, count = lane.width, rows.size * lane.size
    others = [p for p in was if p not in (rows.iterator, lane.iterator)]
    images = [Index.iterator(others.index(p)) if p in others else Index(0) for p in was]
    first = address.substitute(images) + Index.iterator(len(others))
    found: list[tuple[Index, Index, list[SSAValue]]] = []
    for start in range(0, count, width):
        loop = ForOp(min(width, count - start), "vector", width)
        found.append((Index(start), first + start, [*others, loop.iterator]))
    return found


def stage_dense_store(store: StoreOp, rows: ForOp, lane: ForOp) -> None:
    """Write a block as one range of memory after a loop over `rows` with the loop `lane` in it."""
    block = AllocOp(_element(store.buffer), lane.width * rows.size)
    insert_before(rows, block)
    last: Operation = TransposeOp(block.result, rows.size, lane.width)
    insert_after(rows, last)
    for vector, address, places in _vectors(store.places, store.indices[0], rows, lane):
        read = LoadOp(block.result, [places[-1]], Index.iterator(0) + vector.constant)
        _add(places[-1], [read, StoreOp(read.result, store.buffer, places, address)])
        insert_after(last, loop_of(places[-1]))
        last = loop_of(places[-1])
    at = Index.iterator(0) * lane.width + Index.iterator(1)
    insert_before(store, StoreOp(store.value, block.result, [rows.iterator, lane.iterator], at))
    rewrites.erase(store)
