"""Rewrites of guards: those that ranges decide go, others get a copy of the code for each case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Block, SSAValue

from ...dialects.index import Index, range_of
from ...dialects.nest import AccessOp, ForOp, IfOp, InsideOp, LoadOp, loop_of
from . import rewrites

Known: TypeAlias = Mapping[SSAValue, NDArray[np.int64]]
"""The places that an iterator may have where a branch was taken."""
Fact: TypeAlias = tuple[tuple[SSAValue, ...], Index, int]
"""A guard: the iterators that it uses, the expression over these, the size."""
Bounds: TypeAlias = tuple[Fact, ...]

# A nest of more regions than these is one, with every bound checked at every vector.
MAX_REGIONS = 32


def guarded(block: Block) -> list[LoadOp | InsideOp]:
    """The ops of a block that may have guards."""
    return [op for op in block.walk() if isinstance(op, LoadOp | InsideOp)]


def _fact(op: AccessOp, k: int) -> Fact:
    """Guard number k of an op, over the iterators that it uses."""
    index, size = op.guards[k]
    used = sorted(index.iterators)
    images = [Index(0)] * (max(used, default=-1) + 1)
    for n, place in enumerate(used):
        images[place] = Index.iterator(n)
    return tuple(op.places[n] for n in used), index.substitute(images), size


def simplify(block: Block, known: Known) -> None:
    """Drop guards that always hold; reads that are nowhere inside become what is outside."""
    for op in guarded(block):
        decided = [_decided(op, k, known) for k in range(len(op.guards))]
        if False in decided:
            _replace(op, op.outside.value.data if isinstance(op, LoadOp) else 0)
            continue
        op.keep_guards([g for g, d in zip(op.guards, decided, strict=True) if d is None])
        if isinstance(op, InsideOp) and not op.guards:
            _replace(op, 1)


def _decided(op: AccessOp, k: int, known: Known) -> bool | None:
    """Whether a guard holds, or fails, wherever the op stands; None where that varies."""
    places, index, size = fact = _fact(op, k)
    if len(places) == 1 and places[0] in known:
        holds = _holds(fact, known[places[0]])
        return True if holds.all() else None if holds.any() else False
    low, high = range_of(index, tuple(loop_of(p).size for p in places))
    if low >= 0 and high < size:
        return True
    return False if high < 0 or low >= size else None


def _holds(fact: Fact, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a guard of one iterator holds at places of it."""
    _, index, size = fact
    values = np.asarray(index.evaluate([places]))
    return (values >= 0) & (values < size)


def _replace(op: LoadOp | InsideOp, value: float) -> None:
    """Put a number in a read's place."""
    type_ = op.result.type
    if isinstance(type_, IntegerType):
        number = IntegerAttr(int(value), type_)
    else:
        number = FloatAttr(value, type_)  # pyright: ignore[reportArgumentType, reportCallIssue]
    made = arith.ConstantOp(number)  # pyright: ignore[reportUnknownArgumentType]
    rewrites.insert_before(op, made)
    op.result.replace_all_uses_with(made.result)
    rewrites.erase(op)


def regions(loop: ForOp, known: Known | None = None) -> list[ForOp]:
    """Copies of a loop, the only op of its block, in branches on what outer loops decide.

    The parts of a concat and the rows of a padded picture are such regions. In each, a read is
    there, or it is not. Above `MAX_REGIONS` all stay one.
    """
    known = known or {}
    simplify(loop.block, known)
    bounds = _outer_bounds(loop)
    if not bounds or _count(bounds, known, MAX_REGIONS) > MAX_REGIONS:
        return [loop]
    block = loop.parent_block()
    assert block is not None and block.first_op is loop is block.last_op
    found: list[ForOp] = []
    for part, facts in branch(block, bounds[0], known):
        assert isinstance(part.first_op, ForOp)
        found += regions(part.first_op, facts)
    return found


def _outer_bounds(loop: ForOp) -> list[Bounds]:
    """The guards of each read that outer loops decide."""
    inside = {loop.iterator, *(op.iterator for op in loop.walk() if isinstance(op, ForOp))}
    found = dict[Bounds, None]()
    for op in guarded(loop.block):
        facts = (_fact(op, k) for k in range(len(op.guards)))
        found[tuple(fact for fact in facts if inside.isdisjoint(fact[0]))] = None
    found.pop((), None)
    return list(found)


def _narrowed(bounds: Bounds, known: Known) -> tuple[Known, Known]:
    """What is known where all bounds hold, and where one fails."""
    inside, outside = dict(known), dict(known)
    for fact in bounds:
        if len(fact[0]) == 1:
            (place,) = fact[0]
            at = inside.get(place, np.arange(loop_of(place).size))
            holds = _holds(fact, at)
            inside[place] = at[holds]
            if len(bounds) == 1:
                outside[place] = at[~holds]
    return inside, outside


def _count(bounds: Sequence[Bounds], known: Known, most: int) -> int:
    """The branches that bounds make; some number above `most` where they are more."""
    for n, found in enumerate(bounds):
        single = [fact for fact in found if len(fact[0]) == 1 and fact[0][0] in known]
        at = [_holds(fact, known[fact[0][0]]) for fact in single]
        if any(not holds.any() for holds in at):
            continue
        if len(at) == len(found) and all(holds.all() for holds in at):
            continue
        inside, outside = _narrowed(found, known)
        here = _count(bounds[n + 1 :], inside, most)
        return here if here >= most else here + _count(bounds[n + 1 :], outside, most - here)
    return 1


def branch(block: Block, bounds: Bounds, known: Known) -> list[tuple[Block, Known]]:
    """Run one copy of a block where all bounds hold, one where one fails; what is known in each."""
    places = list(dict.fromkeys(place for fact in bounds for place in fact[0]))
    guards = [
        (index.substitute([Index.iterator(places.index(p)) for p in used]), size)
        for used, index, size in bounds
    ]
    made = IfOp(places, guards)
    mapper: dict[SSAValue, SSAValue] = {}
    for op in block.ops:
        made.otherwise.block.add_op(op.clone(mapper))
    rewrites.move_ops(block.ops, made.then.block)
    block.add_op(made)
    _assume(made.then.block, lambda fact: fact in bounds)
    for op in guarded(made.otherwise.block):
        if set(bounds) <= {_fact(op, k) for k in range(len(op.guards))}:
            _replace(op, op.outside.value.data if isinstance(op, LoadOp) else 0)
    inside, outside = _narrowed(bounds, known)
    return [(made.then.block, inside), (made.otherwise.block, outside)]


def interior(loop: ForOp) -> list[ForOp]:
    """A copy of a loop for where no bound fails, whatever the loops in it, and one for the rest.

    Bounds that the loop itself decides stay.
    """
    around = _outer(loop)
    hulls = dict[Fact, None]()
    inner = dict[Fact, None]()
    for op in guarded(loop.block):
        for k in range(len(op.guards)):
            fact = _fact(op, k)
            places, index, _ = fact
            if loop.iterator in places or index.has_floor:
                continue
            kept = tuple(p for p in places if p in around)
            inner[fact] = None
            hulls |= dict.fromkeys(_hull(fact, kept))
    if not inner or any(not places for places, _, _ in hulls):
        return [loop]
    block, single = loop.parent_block(), ForOp(1)
    assert block is not None
    rewrites.insert_before(loop, single)
    rewrites.move_ops([loop], single.block)
    (then, _), (otherwise, _) = branch(single.block, tuple(hulls), {})
    _assume(then, lambda fact: fact in inner)
    found = [part.first_op for part in (then, otherwise)]
    return [part for part in found if isinstance(part, ForOp)]


def _outer(loop: ForOp) -> set[SSAValue]:
    """The iterators of the loops around a loop."""
    found, op = set[SSAValue](), loop.parent_op()
    while op is not None:
        if isinstance(op, ForOp):
            found.add(op.iterator)
        op = op.parent_op()
    return found


def _hull(fact: Fact, kept: tuple[SSAValue, ...]) -> list[Fact]:
    """The least and the largest value of a guard, over some of its iterators."""
    places, index, size = fact
    others = [n for n, p in enumerate(places) if p not in kept]
    images = [Index.iterator(kept.index(p)) if p in kept else Index(0) for p in places]
    inner = sum((Index.iterator(n) * index.coefficient(n) for n in others), Index(0))
    low, high = range_of(inner, tuple(loop_of(p).size for p in places))
    first = index.substitute(images)
    return [(kept, first + low, size), (kept, first + high, size)]


def _assume(block: Block, holds: Callable[[Fact], bool]) -> None:
    """Drop guards that hold."""
    for op in guarded(block):
        op.keep_guards([g for k, g in enumerate(op.guards) if not holds(_fact(op, k))])
        if isinstance(op, InsideOp) and not op.guards:
            _replace(op, 1)


def assume_inside(loop: ForOp) -> None:
    """Drop the guards that a loop decides: all of its places are inside them."""
    _assume(loop.block, lambda fact: loop.iterator in fact[0])


def inside_lanes(loop: ForOp) -> tuple[int, int]:
    """Where along a loop its guards hold, whatever the other iterators; (0, 0): unknown."""
    low, high = 0, loop.size
    for op in guarded(loop.block):
        for k in range(len(op.guards)):
            places, index, size = _fact(op, k)
            if loop.iterator not in places:
                continue
            lane = places.index(loop.iterator)
            step = index.coefficient(lane)
            if index.has_floor or step < 1:
                return 0, 0
            extents = tuple(loop_of(p).size for p in places)
            least, most = range_of(index - Index.iterator(lane) * step, extents)
            low = max(low, -(least // step))
            high = min(high, (size - 1 - most) // step + 1)
    return (low, high) if low < high else (0, 0)


def cut_inside(loop: ForOp, lanes: int) -> list[ForOp]:
    """The loop, cut at whole vectors into parts where its guards hold, and what is left."""
    low, high = inside_lanes(loop)
    if (low, high) == (0, loop.size):
        simplify(loop.block, {})
        return [loop]
    low, high = -(-low // lanes) * lanes, high // lanes * lanes
    parts = rewrites.cut_at(loop, [low, high] if low < high else [])
    for part in parts:
        simplify(part.block, {})
    return parts
