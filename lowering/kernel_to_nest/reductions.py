"""Rewrites of reductions: totals of their own for each lane, and for several vectors in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.index import Index
from ...dialects.nest import AccumulateOp, AllocOp, ForOp, IdentityOp, LoadOp, StoreOp
from . import rewrites
from .rewrites import insert_after, insert_before, mark

Pairs = Sequence[tuple[SSAValue, str]]
"""Totals, and the kinds of their reductions."""
Make = Callable[[list[SSAValue], Index], Sequence[Operation]]
"""Ops at an address: (iterators, expression over these)."""


@dataclass(frozen=True)
class Lanes:
    """Totals that a loop's values were taken into: one for each lane.

    Attributes:
        totals: by the buffer of the total that they are parts of.
        last: the last of the loops that took values.
    """

    totals: Mapping[SSAValue, SSAValue]
    last: Operation


def vectorise_reduction(loop: ForOp, lanes: int, chains: int, top: ForOp | None = None) -> Lanes:
    """Take the values of a loop into totals for each lane of `chains` vectors, which wait for no
    other; joined by halves after the loop, then go on with one vector.

    The order of additions changes. The caller takes the lanes together: `take_lanes`.

    Args:
        top: the outermost of the loops around it that add to the same total: chains are joined
            after that. By default it is the loop itself.
    """
    top = top or loop
    kinds = {op.buffer: op.reduction.data for op in loop.block.ops if isinstance(op, AccumulateOp)}
    whole = loop.size - loop.size % lanes
    big = loop.size - loop.size % (lanes * chains) if chains > 1 else 0
    totals = _start(top, kinds, lanes, chains if big else 1)
    parts = {totals[buffer]: (kind, lanes) for buffer, kind in kinds.items()}
    done, last = 0, loop
    for last in rewrites.cut_at(loop, [big, whole]):
        if done < big:
            _, chain, lane = rewrites.split_twice(mark(last, "serial", unroll=1), chains, lanes)
            mark(chain, "unrolled")
            _redirect(mark(lane, "vector", lanes), totals, [(chain.iterator, lanes)])
        elif done < whole:
            _, lane = rewrites.split(mark(last, "serial", unroll=1), lanes)
            _redirect(mark(lane, "vector", lanes), totals, [])
        else:
            _redirect(mark(last, "vector", lanes), totals, [], masked=True)
        done += _count(last)
        if done == big and top is loop:
            last = _joined(last, parts, lanes, chains)
    if top is not loop:
        last = _joined(top, parts, lanes, chains if big else 1)
    return Lanes(totals, last)


def _count(loop: ForOp) -> int:
    """Places of a loop and of all in it."""
    inner = rewrites.only_op(loop)
    return loop.size * (1 if inner is None else _count(inner))


def _start(
    loop: ForOp, kinds: Mapping[SSAValue, str], lanes: int, chains: int
) -> dict[SSAValue, SSAValue]:
    """Wide totals before a loop, at what each reduction starts from, by the buffer of the total."""
    found, made = dict[SSAValue, SSAValue](), list[tuple[IdentityOp, AllocOp]]()
    for buffer, kind in kinds.items():
        assert isinstance(buffer.type, MemRefType)
        element = buffer.type.element_type
        wide, start = AllocOp(element, chains * lanes), IdentityOp(kind, element)
        insert_before(loop, wide)
        insert_before(loop, start)
        found[buffer] = wide.result
        made.append((start, wide))

    def stores(places: list[SSAValue], at: Index) -> list[StoreOp]:
        return [StoreOp(start.result, wide.result, places, at) for start, wide in made]

    insert_before(loop, _each_vector(chains, lanes, stores))
    return found


def _each_vector(chains: int, lanes: int, make: Make) -> ForOp:
    """What is made, for each lane of so many vectors."""
    lane = ForOp(lanes, "vector" if lanes > 1 else "unrolled", lanes)
    if chains == 1:
        lane.block.add_ops(make([lane.iterator], Index.iterator(0)))
        return lane
    chain = ForOp(chains, "unrolled")
    chain.block.add_op(lane)
    at = Index.iterator(0) * lanes + Index.iterator(1)
    lane.block.add_ops(make([chain.iterator, lane.iterator], at))
    return chain


def _redirect(
    lane: ForOp,
    totals: Mapping[SSAValue, SSAValue],
    chain: rewrites.Terms,
    *,
    masked: bool = False,
) -> None:
    """Take the values in a loop over lanes into the wide totals."""
    terms = [*chain, (lane.iterator, 1)]
    places = [place for place, _ in terms]
    for op in list(lane.block.ops):
        if isinstance(op, AccumulateOp) and op.buffer in totals:
            wide = totals[op.buffer]
            at = rewrites.linear(places, terms)
            made = AccumulateOp(op.reduction.data, op.value, wide, places, at)
            if masked:
                made.properties["masked"] = UnitAttr()
            insert_before(op, made)
            rewrites.erase(op)


def _joined(
    last: Operation, totals: Mapping[SSAValue, tuple[str, int]], lanes: int, chains: int
) -> Operation:
    """Combine chains by halves; the last op of that.

    Args:
        totals: by buffer, the kind of reduction, and the elements of one chain.
    """
    while chains > 1:
        half = chains // 2
        for size in dict.fromkeys(count for _, count in totals.values()):
            by = (chains - half) * size
            pairs = [(w, kind) for w, (kind, count) in totals.items() if count == size]

            def make(places: list[SSAValue], at: Index, by: int = by, pairs: Pairs = pairs):
                others = [(LoadOp(w, places, at + by), w, kind) for w, kind in pairs]
                taken = (AccumulateOp(k, o.result, w, places, at) for o, w, k in others)
                return [*(other for other, _, _ in others), *taken]

            made = _each_vector(half * size // lanes, lanes, make)
            insert_after(last, made)
            last = made
        chains -= half
    return last


def take_lanes(
    kind: str, wide: SSAValue, total: SSAValue, places: Sequence[SSAValue], at: Index, lanes: int
) -> ForOp:
    """A loop that takes the first vector of wide totals into the total at an address."""
    lane = ForOp(lanes, "vector", lanes)
    read = LoadOp(wide, [lane.iterator], Index.iterator(0))
    lane.block.add_ops([read, AccumulateOp(kind, read.result, total, places, at)])
    return lane


def in_turns(deep: ForOp, total: AllocOp, start: ForOp, chains: int) -> None:
    """Several totals in turn along a loop whose body is a loop over lanes.

    `start` stores what the totals, one for each lane, start from.
    """
    assert isinstance(total.result.type, MemRefType)
    (lanes,) = total.result.type.get_shape()
    wide = AllocOp(total.result.type.element_type, chains * lanes)
    insert_before(total, wide)
    parts = rewrites.cut_at(deep, [deep.size - deep.size % chains])
    total.result.replace_all_uses_with(wide.result)
    rewrites.erase(total)
    around = ForOp(chains, "unrolled")
    insert_before(start, around)
    rewrites.move_ops([start], around.block)
    for op in start.block.ops:
        if isinstance(op, StoreOp):
            rewrites.shift(op, [(around.iterator, lanes)])
    for part in parts:
        _, turn = rewrites.split(mark(part, "serial", unroll=1), min(chains, part.size))
        mark(turn, "unrolled")
        for op in turn.walk():
            if isinstance(op, AccumulateOp):
                rewrites.shift(op, [(turn.iterator, lanes)])
    chain, lane = ForOp(chains - 1, "unrolled"), ForOp(lanes, "vector", lanes)
    chain.block.add_op(lane)
    places = [chain.iterator, lane.iterator]
    at = (Index.iterator(0) + 1) * lanes + Index.iterator(1)
    other = LoadOp(wide.result, places, at)
    first = AccumulateOp("sum", other.result, wide.result, [lane.iterator], Index.iterator(0))
    lane.block.add_ops([other, first])
    insert_after(parts[-1], chain)


def chain(top: ForOp, deep: ForOp, chains: int, lanes: int) -> None:
    """Take what a loop takes into several totals in turn, which wait for no other.

    They are joined by halves after `top`, the loop itself or one around it. The order of additions
    changes.
    """
    taken = [op for op in deep.walk() if isinstance(op, AccumulateOp)]
    own = {op.result for op in deep.walk() if isinstance(op, AllocOp)}
    kinds = {op.buffer: op.reduction.data for op in taken if op.buffer not in own}
    wide: dict[SSAValue, tuple[str, int]] = {}
    starts: dict[Operation, list[tuple[StoreOp, int]]] = {}
    for buffer, kind in kinds.items():
        assert isinstance(buffer.type, MemRefType) and isinstance(buffer.owner, AllocOp)
        (count,) = buffer.type.get_shape()
        made = AllocOp(buffer.type.element_type, count * chains)
        insert_before(buffer.owner, made)
        rewrites.erase_into(buffer.owner, made)
        wide[made.result] = kind, count
        for store in [use.operation for use in made.result.uses]:
            if isinstance(store, StoreOp) and isinstance(store.value.owner, IdentityOp):
                starts.setdefault(_beside(store, top), []).append((store, count))
    for start, stores in starts.items():
        each = ForOp(chains, "unrolled")
        insert_before(start, each)
        rewrites.move_ops([start], each.block)
        for store, count in stores:
            rewrites.shift(store, [(each.iterator, count)])
    turns = rewrites.cut_at(deep, [deep.size - deep.size % chains])[0]
    _, turn = rewrites.split(turns, chains)
    mark(turn, "unrolled")
    for op in [op for op in turn.walk() if isinstance(op, AccumulateOp) and op.buffer in wide]:
        rewrites.shift(op, [(turn.iterator, wide[op.buffer][1])])
    _joined(top, wide, lanes, chains)


def _beside(op: Operation, top: ForOp) -> Operation:
    """The op around another that stands in the same block as a loop."""
    block = top.parent_block()
    while op.parent_block() is not block:
        outer = op.parent_op()
        assert outer is not None
        op = outer
    return op
