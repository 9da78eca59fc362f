"""Rows of results that are staged on the stack, and written with non-temporal stores when complete.

Points that are computed together share vectors, but their rows start at different places of a cache
line: no vector is a whole line in all of them. On the stack they may start anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialects.index import Index as Affine
from ..emit.access import Access, Point, emit_index
from ..emit.emitter import Emitter
from ..emit.types import Value
from ..isa import Isa
from .nontemporal import LINE, whole_vectors

# Limit for the rows of points in the first-level cache, beside their operands.
MOST_BYTES = 1 << 14


@dataclass(frozen=True)
class StagedRows:
    """Rows of `extent` elements along iterator `vector`, of points whose result is `target`."""

    target: Access
    vector: int
    extent: int
    lanes: int
    pointer: Value

    @classmethod
    def reserve(cls, b: Emitter, isa: Isa, target: Access, row: tuple[int, int], count: int):
        """Reserve `count` rows: their iterator and extent are `row`."""
        lanes = isa.lanes(target.memory)
        pointer = b.reserve(target.memory, count * _pitch(row[1], lanes))
        return cls(target, *row, lanes, pointer)

    def row(self, k: int) -> Access:
        """The pointer to row `k`."""
        flat = Affine.iterator(self.vector) + k * _pitch(self.extent, self.lanes)
        return Access(self.pointer, self.target.element, flat)

    def store(self, b: Emitter, points: Sequence[Point]) -> None:
        """Store the rows of these points: non-temporal stores of whole vectors, plain ends."""
        assert self.target.pointer is not None
        vector = self.target.memory.vector(self.lanes)
        for k, point in enumerate(points):
            start = point.at({self.vector: 0})
            first = emit_index(b, self.target.flat, start)
            place = emit_index(b, self.row(k).flat, start)
            to = b.address(vector, self.target.pointer, first)
            source = b.address(vector, self.pointer, place)
            begin, end = whole_vectors(b, first, (0, self.extent), self.lanes)
            for low, mask in ((0, begin), (end, b.sub(self.extent, end))):
                b.store(b.load(vector, source, low, mask=mask), to, low, mask=mask)
            with b.loop(begin, end, self.lanes) as index:
                b.store(b.load(vector, source, index), to, index, nontemporal=LINE)


def can_be_staged(isa: Isa, target: Access, extent: int, count: int) -> bool:
    """Whether this many rows are small enough."""
    lanes = isa.lanes(target.memory)
    return count * _pitch(extent, lanes) * target.memory.bytes <= MOST_BYTES


def _pitch(extent: int, lanes: int) -> int:
    """Elements of a row, and of the vector that may be its last, masked one."""
    return (extent // lanes + 2) * lanes
