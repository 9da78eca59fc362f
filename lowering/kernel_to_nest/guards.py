"""Rewrites of guards: those that ranges decide go, others get a copy of the code for each case."""

from __future__ import annotations

from collections.abc import Mapping
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
GuardOfOne: TypeAlias = tuple[SSAValue, Index, int]
"""A guard of a single iterator: it, the expression over it as iterator 0, the size."""


def guarded(block: Block) -> list[LoadOp | InsideOp]:
    """The ops of a block that may have guards."""
    return [op for op in block.walk() if isinstance(op, LoadOp | InsideOp)]


def of_one(op: AccessOp, k: int) -> GuardOfOne | None:
    """Guard number k of an op, if a single iterator decides it."""
    index, size = op.guards[k]
    if len(index.iterators) != 1:
        return None
    (n,) = index.iterators
    return op.places[n], index.substitute([Index.iterator(0)] * (n + 1)), size


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
    index, size = op.guards[k]
    single = of_one(op, k)
    if single is not None and single[0] in known:
        holds = _holds(single, known[single[0]])
        return True if holds.all() else None if holds.any() else False
    low, high = range_of(index, tuple(loop_of(p).size for p in op.places))
    if low >= 0 and high < size:
        return True
    return False if high < 0 or low >= size else None


def _holds(guard: GuardOfOne, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    _, index, size = guard
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


def branch(block: Block, guard: GuardOfOne, known: Known) -> list[tuple[Block, Known]]:
    """Run one copy of a block where a guard holds, one where it fails; what is known in each."""
    place, index, size = guard
    made = IfOp([place], [(index, size)])
    mapper: dict[SSAValue, SSAValue] = {}
    for op in block.ops:
        made.otherwise.block.add_op(op.clone(mapper))
    rewrites.move_ops(block.ops, made.then.block)
    block.add_op(made)
    places = known.get(place, np.arange(loop_of(place).size))
    holds = _holds(guard, places)
    return [
        (made.then.block, {**known, place: places[holds]}),
        (made.otherwise.block, {**known, place: places[~holds]}),
    ]


def specialise(loop: ForOp, lanes: int, known: Known | None = None) -> list[ForOp]:
    """Copies of a loop, the only op of its block, with fewer guards.

    Guards that an outer loop decides become branches around the loop; for its own the loop is cut,
    at whole vectors, into parts inside and outside.
    """
    known = known or {}
    simplify(loop.block, known)
    guard = _outer_guard(loop)
    if guard is not None:
        block = loop.parent_block()
        assert block is not None and block.first_op is loop is block.last_op
        found: list[ForOp] = []
        for part, facts in branch(block, guard, known):
            assert isinstance(part.first_op, ForOp)
            found += specialise(part.first_op, lanes, facts)
        return found
    low, high = _inside(loop, lanes)
    parts = rewrites.cut_at(loop, [low, high] if low < high else [])
    for part in parts:
        simplify(part.block, known)
    return parts


def _outer_guard(loop: ForOp) -> GuardOfOne | None:
    """A guard that another loop's iterator decides alone."""
    for op in guarded(loop.block):
        for k in range(len(op.guards)):
            found = of_one(op, k)
            if found is not None and found[0] is not loop.iterator:
                return found
    return None


def _inside(loop: ForOp, lanes: int) -> tuple[int, int]:
    """Whole vectors in which all guards hold; (0, 0) where that is not known."""
    low, high = 0, loop.size
    for op in guarded(loop.block):
        for k in range(len(op.guards)):
            found = of_one(op, k)
            if found is None or found[1].has_floor or found[1].coefficient(0) < 1:
                return 0, 0
            _, index, size = found
            step = index.coefficient(0)
            low = max(low, -(index.constant // step))
            high = min(high, (size - 1 - index.constant) // step + 1)
    return -(-low // lanes) * lanes, high // lanes * lanes
