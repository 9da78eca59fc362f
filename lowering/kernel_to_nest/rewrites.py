"""Schedules as rewrites: loops of a nest become loops that compute the same.

`split`, `cut`, `interchange`, `distribute`, `fuse` and `sink` move places between loops, `mark`
says how a loop is run. None asks what the nest computes. What the caller must know of the order in
which places may run is in each docstring. Names are those of Exo (Ikarashi et al. 2022) and of the
loop transformations that it builds on (Wolfe 1996).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.index import Index, normalise
from ...dialects.nest import KIND, AccessOp, AllocOp, ForOp, IfOp, PlacedOp, StoreOp, loop_of
from ...dialects.nest_access import integer

Terms = Sequence[tuple[SSAValue, int]]
"""A sum of iterators times numbers."""


def linear(places: Sequence[SSAValue], terms: Terms, constant: int = 0) -> Index:
    """A sum over iterators that are numbered by their position in `places`."""
    parts = (Index.iterator(places.index(v)) * c for v, c in terms)
    return sum(parts, Index(constant))


def substitute(old: SSAValue, terms: Terms, constant: int = 0) -> None:
    """Put a sum of other iterators in an iterator's place, wherever it stands."""
    places = list(dict.fromkeys(v for v, _ in terms))
    substitute_index(old, places, linear(places, terms, constant))


def substitute_index(old: SSAValue, over: Sequence[SSAValue], image: Index) -> None:
    """Put an expression over other iterators in an iterator's place, wherever it stands."""
    for op in dict.fromkeys(use.operation for use in old.uses):
        assert isinstance(op, PlacedOp)
        was = list(op.places)
        places = list(dict.fromkeys([*(p for p in was if p is not old), *over]))
        moved = image.substitute([Index.iterator(places.index(v)) for v in over])
        images = [moved if p is old else Index.iterator(places.index(p)) for p in was]
        indices = [e.substitute(images) for e in op.indices]
        if any(e.has_floor for e in indices):
            extents = [loop_of(p).size for p in places]
            indices = [normalise(e, extents) for e in indices]
        op.replace_places(places, indices)


def mark(loop: ForOp, kind: str, lanes: int = 0, unroll: int | None = None) -> ForOp:
    """Say how a loop is run."""
    loop.properties["kind"] = KIND[kind]
    loop.properties["lanes"] = integer(lanes)
    if unroll is not None:
        loop.properties["unroll"] = integer(unroll)
    return loop


def store_nontemporal(store: StoreOp, piece: int) -> None:
    """Let a store go past the caches, in vectors aligned to so many bytes; 0: it does not."""
    store.properties["nontemporal"] = integer(piece)


def resize(loop: ForOp, size: int) -> None:
    """Give a loop another extent."""
    loop.properties["extent"] = integer(size)


def move_ops(ops: Iterable[Operation], target: Block) -> None:
    """Put ops at the end of a block."""
    for op in list(ops):
        op.detach()
        target.add_op(op)


def insert_before(op: Operation, made: Operation) -> None:
    """Put a new op before another."""
    block = op.parent_block()
    assert block is not None
    block.insert_ops_before([made], op)


def insert_after(op: Operation, made: Operation) -> None:
    """Put a new op after another."""
    block = op.parent_block()
    assert block is not None
    block.insert_ops_after([made], op)


def erase_into(old: AllocOp, made: AllocOp) -> None:
    """Put one local buffer in another's place."""
    old.result.replace_all_uses_with(made.result)
    erase(old)


def erase(op: Operation) -> None:
    """Take an op out of its block for good."""
    op.detach()
    op.erase()


# Places of one loop


def cut(loop: ForOp, at: int) -> tuple[ForOp, ForOp]:
    """One loop up to a place, one from there on."""
    assert 0 < at < loop.size and not loop.indices
    rest = loop.clone()
    insert_after(loop, rest)
    resize(rest, loop.size - at)
    substitute(rest.iterator, [(rest.iterator, 1)], at)
    resize(loop, at)
    return loop, rest


def cut_at(loop: ForOp, places: Iterable[int]) -> list[ForOp]:
    """One loop for each run between places; those outside of the loop cut nothing."""
    found, done = [loop], 0
    for at in sorted({p for p in places if 0 < p < loop.size}):
        found[-1:] = cut(found[-1], at - done)
        done = at
    return found


def split(loop: ForOp, factor: int) -> tuple[ForOp, ForOp]:
    """A loop over runs of `factor` places, which divides the extent, and the loop over a run."""
    assert loop.size % factor == 0 and not loop.indices
    inner = ForOp(factor, hint=loop.iterator.name_hint)
    move_ops(loop.block.ops, inner.block)
    substitute(loop.iterator, [(loop.iterator, factor), (inner.iterator, 1)])
    loop.block.add_op(inner)
    resize(loop, loop.size // factor)
    return loop, inner


def split_twice(loop: ForOp, count: int, factor: int) -> tuple[ForOp, ForOp, ForOp]:
    """A loop over blocks of `count` runs of `factor` places, and those over a block and a run."""
    assert loop.size % (count * factor) == 0 and not loop.indices
    middle, inner = (ForOp(n, hint=loop.iterator.name_hint) for n in (count, factor))
    move_ops(loop.block.ops, inner.block)
    terms = [(loop.iterator, count * factor), (middle.iterator, factor), (inner.iterator, 1)]
    substitute(loop.iterator, terms)
    middle.block.add_op(inner)
    loop.block.add_op(middle)
    resize(loop, loop.size // (count * factor))
    return loop, middle, inner


def split_bound(loop: ForOp, factor: int) -> tuple[ForOp, ForOp]:
    """A loop over runs, and one over a run: the last one ends where the loop ended."""
    if loop.size % factor == 0:
        return split(loop, factor)
    outer = ForOp(-(-loop.size // factor), loop.kind.data, hint=loop.iterator.name_hint)
    upper = Index(loop.size) - Index.iterator(0) * factor
    inner = ForOp(factor, upper=[upper], places=[outer.iterator])
    move_ops(loop.block.ops, inner.block)
    insert_before(loop, outer)
    outer.block.add_op(inner)
    substitute(loop.iterator, [(outer.iterator, factor), (inner.iterator, 1)])
    erase(loop)
    return outer, inner


def split_branch(loop: ForOp, factor: int) -> tuple[ForOp, list[ForOp]]:
    """A loop over runs, and loops over a run of each length: a branch tells them apart.

    So the extents of both are known numbers, and the loop over runs may be parallel.
    """
    size, rest = loop.size, loop.size % factor
    if not rest:
        outer, inner = split(loop, factor)
        return outer, [inner]
    outer = ForOp(-(-size // factor), hint=loop.iterator.name_hint)
    choice = IfOp([outer.iterator], [(Index.iterator(0), size // factor)])
    short = loop.clone()
    insert_before(loop, outer)
    outer.block.add_op(choice)
    loop.detach()
    for run, body, count in ((loop, choice.then, factor), (short, choice.otherwise, rest)):
        body.block.add_op(run)
        resize(run, count)
        substitute(run.iterator, [(outer.iterator, factor), (run.iterator, 1)])
    return outer, [loop, short]


def drop_single(block: Block) -> None:
    """Put the bodies of loops over one place where the loops stand.

    Vectors stay, and loops that say how often to unroll them: LLVM chooses other orders without.
    """
    for loop in [op for op in block.walk() if isinstance(op, ForOp)]:
        plain = loop.kind.data != "vector" and loop.unroll is None and not loop.indices
        if loop.size == 1 and plain:
            substitute(loop.iterator, [])
            for op in list(loop.block.ops):
                op.detach()
                insert_before(loop, op)
            erase(loop)


def vectorise(loop: ForOp, lanes: int, unroll: int | None = None) -> None:
    """Run a loop in vectors of so many lanes, the last of which may leave some out."""
    whole = loop.size - loop.size % lanes
    for part in cut_at(loop, [whole]):
        if part.size < lanes:
            mark(part, "vector", lanes)
            continue
        outer, inner = split(part, lanes)
        mark(outer, "serial", unroll=unroll)
        mark(inner, "vector", lanes)


# Loops in loops


def only_op(loop: ForOp) -> ForOp | None:
    """The loop that is all of a loop's body."""
    first = loop.block.first_op
    return first if isinstance(first, ForOp) and first is loop.block.last_op else None


def interchange(loop: ForOp) -> ForOp:
    """Exchange a loop with the only op in it, a loop; gives that one, now the outer.

    The places must write elements of their own, or take values into totals in any order.
    """
    inner = only_op(loop)
    assert inner is not None and loop.iterator not in inner.places
    inner.detach()
    move_ops(inner.block.ops, loop.block)
    insert_before(loop, inner)
    loop.detach()
    inner.block.add_op(loop)
    return inner


def reorder(wanted: Sequence[ForOp]) -> None:
    """Put the loops of a perfect nest into an order: `interchange`, as often as it takes."""
    for k, loop in enumerate(wanted):
        inside = set(wanted[k + 1 :])
        while (outer := loop.parent_op()) in inside:
            assert isinstance(outer, ForOp)
            interchange(outer)


def distribute(loop: ForOp, starts: Sequence[Operation] | None = None) -> list[ForOp]:
    """A loop for each part of a body (loop distribution); local buffers get room for every place.

    A part may use what an earlier one left in buffers, at the same place only.

    Args:
        starts: the first op of each part after the first; by default loops are parts.
    """
    for op in list(loop.block.ops):
        if isinstance(op, AllocOp):
            expand(op, loop)
    found = [loop]
    for part in _parts(loop.block, starts)[1:]:
        copy = _same_places(loop)
        insert_after(found[-1], copy)
        move_ops(part, copy.block)
        rename(copy, loop.iterator)
        found.append(copy)
    return found


def _parts(block: Block, starts: Sequence[Operation] | None) -> list[list[Operation]]:
    parts: list[list[Operation]] = [[]]
    for op in block.ops:
        last = parts[-1][-1] if parts[-1] else None
        alone = isinstance(op, ForOp | IfOp) or isinstance(last, ForOp | IfOp)
        if last is not None and (alone if starts is None else op in starts):
            parts.append([])
        parts[-1].append(op)
    return parts


def _same_places(loop: ForOp) -> ForOp:
    """An empty loop over the same places, run the same way."""
    lower, upper = loop.bounds
    return ForOp(
        loop.size,
        loop.kind.data,
        loop.lanes.value.data,
        lower=lower,
        upper=upper,
        places=list(loop.places),
        unroll=None if loop.unroll is None else loop.unroll.value.data,
        hint=loop.iterator.name_hint,
    )


def rename(loop: ForOp, old: SSAValue) -> None:
    """Use a loop's iterator in its body in place of the one that the body stood under."""
    for op in loop.walk():
        if isinstance(op, PlacedOp) and op is not loop and old in op.places:
            places = [loop.iterator if p is old else p for p in op.places]
            op.replace_places(places, op.indices)


def expand(alloc: AllocOp, loop: ForOp) -> None:
    """Move a local buffer out of a loop, with room for every place of it.

    The lanes of a vector are neighbours, so that each element becomes a vector.
    """
    type_ = alloc.result.type
    assert isinstance(type_, MemRefType) and isinstance(type_.memory_space, StringAttr)
    (count,) = type_.get_shape()
    wide = AllocOp(type_.element_type, count * loop.width, type_.memory_space)
    insert_before(loop, wide)
    lanes = loop.kind.data == "vector"
    for op in [use.operation for use in alloc.result.uses]:
        if isinstance(op, AccessOp):
            if lanes and count > 1:
                op.replace_places(op.places, [op.indices[0] * loop.width, *op.indices[1:]])
            shift(op, [(loop.iterator, 1 if lanes else count)])
    erase_into(alloc, wide)


def shift(op: AccessOp, terms: Terms) -> None:
    """Add to an op's address."""
    places = list(dict.fromkeys([*op.places, *(v for v, _ in terms)]))
    op.replace_places(places, [op.indices[0] + linear(places, terms), *op.indices[1:]])


def sink(loop: ForOp) -> list[ForOp]:
    """Move a loop into the serial loops of its body; gives all the loops that it became."""
    found = distribute(loop)
    for part in found:
        inner = only_op(part)
        if inner is not None and inner.kind.data == "serial" and part.iterator not in inner.places:
            interchange(part)
    return found


def fuse(loop: ForOp, other: ForOp) -> None:
    """Put the body of a loop over the same places behind another's, on which it must not depend."""
    assert loop.size == other.size and not loop.indices and not other.indices
    move_ops(other.block.ops, loop.block)
    rename(loop, other.iterator)
    erase(other)


def tile_together(loops: Sequence[ForOp], factor: int, kind: str) -> ForOp:
    """A loop over `factor` places at a time of neighbouring loops, their places counted through."""
    count = sum(loop.size for loop in loops)
    outer = ForOp(-(-count // factor), kind)
    insert_before(loops[0], outer)
    done, first = 0, Index.iterator(0) * factor
    for loop in loops:
        assert not loop.indices
        loop.detach()
        outer.block.add_op(loop)
        if outer.size > 1:
            loop.properties["lowers"] = integer(1)
            bounds = [first - done, first - (done - factor)]
            loop.replace_places([outer.iterator], bounds)
        done += loop.size
    return outer
