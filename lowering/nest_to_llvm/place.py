"""Where an op of a nest accesses memory: its expressions, with iterators that count in steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.index import Index as Affine
from ...dialects.nest import (
    AccessOp,
    IfOp,
    PlacedOp,
    loop_of,
)
from ..kernel_to_cpu.emit.access import (
    Point,
    Vector,
    emit_index,
)
from ..kernel_to_cpu.emit.emitter import Emitter, Mask
from ..kernel_to_cpu.emit.types import Index, Value, constant


class AccessPlace:
    """What an op's expressions are over, looked up once. Iterators count in their `steps`.

    Attributes:
        vector: which of the places is the iterator of the vector loop, and its lanes.
    """

    def __init__(self, op: PlacedOp, steps: Mapping[SSAValue, int]):
        self.places = tuple(op.places)
        self._loops = [loop_of(place) for place in self.places]
        self._counts = [steps.get(place, 1) for place in self.places]
        self.indices, self.guards = op.indices, ()
        if isinstance(op, IfOp) or (isinstance(op, AccessOp) and len(self.indices) > 1):
            self.guards = op.guards
        if any(count != 1 for count in self._counts):
            self.indices = tuple(_rescaled(e, self._counts) for e in self.indices)
            self.guards = tuple((_rescaled(e, self._counts), n) for e, n in self.guards)
        lanes = (k for k, p in enumerate(self._loops) if p.kind.data == "vector")
        lane = next(lanes, None)
        self.vector = None if lane is None else (lane, self._loops[lane].width)

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """How far each iterator counts."""
        pairs = zip(self._loops, self._counts, strict=True)
        return tuple((loop.size - 1) * count + 1 for loop, count in pairs)

    def first(self, b: Emitter, at: Mapping[SSAValue, Index]) -> Index:
        """The first expression, the vector loop's iterator at its first lane."""
        index, total = self.indices[0], self.indices[0].constant
        if index.has_floor:
            return emit_index(b, index, self.point(at))
        for k, coefficient in index.terms:
            assert isinstance(k, int)
            value = at[self.places[k]]
            if isinstance(value, int) and isinstance(total, int):
                total += value * coefficient
            else:
                total = b.add(total, b.mul(value, coefficient))
        return total

    @property
    def uses_lanes(self) -> bool:
        """Whether an expression is over the iterator of the vector loop."""
        return self.vector is not None and any(self.vector[0] in e.iterators for e in self.indices)

    def known(self, at: Mapping[SSAValue, Index]) -> list[int | None]:
        """The element of each lane, where all iterators are numbers; None where a guard fails."""
        values: list[Any] = [at[place] for place in self.places]
        lanes = 1
        if self.vector is not None:
            lane, lanes = self.vector
            values[lane] = np.arange(lanes)
        found = np.broadcast_to(self.indices[0].evaluate(values), lanes)
        inside = np.ones(lanes, np.bool_)
        for index, size in self.guards:
            place = np.asarray(index.evaluate(values))
            inside &= (place >= 0) & (place < size)
        return [int(k) if here else None for k, here in zip(found, inside, strict=True)]

    def point(self, at: Mapping[SSAValue, Index], mask: Mask = None) -> Point:
        """Where the expressions are taken; iterator k is place number k."""
        values = {k: at[place] for k, place in enumerate(self.places)}
        vector = None
        if self.vector is not None:
            vector = Vector(*self.vector, mask, aligned=True)
        return Point(self.extents, values, vector)


def _rescaled(index: Affine, counts: Sequence[int]) -> Affine:
    """The same place where iterator k counts in steps of `counts[k]`, which divide what it is
    multiplied by."""
    return Affine(
        index.constant,
        tuple((a, c // counts[a] if isinstance(a, int) else c) for a, c in index.terms),
    )


def step_of(iterator: SSAValue) -> int:
    """What a loop may count in: a divisor of all that its iterator is multiplied by.

    LLVM judges by the size of a body how often to unroll it, and a multiplication counts.
    """
    found = 0
    for use in iterator.uses:
        op = use.operation
        assert isinstance(op, PlacedOp)
        k = use.index - (len(op.operands) - len(op.places))
        for index in op.indices:
            step = index.coefficient(k)
            if k in (index - Affine.iterator(k) * step).iterators:
                return 1
            found = math.gcd(found, step)
    return max(1, found)


def picked(
    b: Emitter,
    held: Mapping[int, Value],
    places: Sequence[int | None],
    real: int,
    outside: float = 0.0,
) -> Value | None:
    """Elements at places of a row, out of the vectors that start at the keys of `held`.

    Places that are None hold `outside`; lanes from `real` on hold anything. None where nothing is
    held.
    """
    if not held:
        return None
    starts, vectors = list(held), list(held.values())
    size = vectors[0].type.lanes
    picks: list[int] = []
    for place in places[:real]:
        if place is None:
            picks.append(len(starts) * size)
            continue
        k = next(k for k, start in enumerate(starts) if start <= place < start + size)
        picks.append(k * size + place - starts[k])
    vectors.append(constant(vectors[0].type, outside))
    if len(places) == 1:
        return b.extract(vectors[picks[0] // size], picks[0] % size)
    return b.pick(vectors, picks + [picks[0]] * (len(places) - len(picks)))
