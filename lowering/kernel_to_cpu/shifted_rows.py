"""Rows of a result that start anywhere in a cache line, put together from vectors and stored whole.

Blocks of a transposed result are vectors of several rows. Where rows are no whole lines, these
vectors lie across lines, and would be stored through the caches, which read each line first. Here
each row keeps its last vector on the stack: with the next one it makes up a line, which goes past
the caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from .access import Access, Point, emit_index, to_memory
from .emit import Emitter
from .past_caches import LINE
from .types import I64, Index, Value


@dataclass(frozen=True)
class ShiftedRows:
    """Two vectors of each of `count` rows: what was put last, and what came before it."""

    target: Access
    lanes: int
    count: int
    pointer: Value

    @classmethod
    def reserve(cls, b: Emitter, target: Access, lanes: int, count: int) -> Self:
        """Room for `count` rows on the stack; a vector of `lanes` is a line."""
        assert lanes * target.memory.bytes == LINE
        return cls(target, lanes, count, b.reserve(target.memory, 2 * lanes * count))

    def put(self, b: Emitter, row: Index, value: Value) -> None:
        """Keep a vector of the compute type as the row's last one."""
        place = b.add(b.mul(row, 2 * self.lanes), self.lanes)
        b.store(to_memory(b, value, self.target.element), self.pointer, place)

    def store(self, b: Emitter, row: Index, point: Point, *, first: Value) -> None:
        """Store the line that ends in the row's last vector, which begins at `point`.

        If it is the `first` one, only what of it lies in that line is stored.
        """
        assert self.target.pointer is not None
        line = self.target.memory.vector(self.lanes)
        place = emit_index(b, self.target.flat, point)
        shift = self._shift(b, place)
        before = b.mul(row, 2 * self.lanes)
        last = b.load(line, self.pointer, b.add(before, self.lanes))

        def begin() -> list[Value]:
            b.store(last, self._target, place, mask=b.sub(self.lanes, shift))
            return []

        def whole() -> list[Value]:
            value = b.load(line, self.pointer, b.add(before, b.sub(self.lanes, shift)))
            b.store(value, self._target, b.sub(place, shift), past_caches=LINE)
            return []

        b.if_else(first, begin, whole)
        b.store(last, self.pointer, before)

    def end(self, b: Emitter, row: Index, point: Point) -> None:
        """Store what is left of the row's last vector, which ends at `point`."""
        place = emit_index(b, self.target.flat, point)
        shift = self._shift(b, place)
        start = b.add(b.mul(row, 2 * self.lanes), b.sub(self.lanes, shift))
        value = b.load(self.target.memory.vector(self.lanes), self.pointer, start)
        b.store(value, self._target, b.sub(place, shift), mask=shift)

    @property
    def _target(self) -> Value:
        assert self.target.pointer is not None
        return self.target.pointer

    def _shift(self, b: Emitter, place: Index) -> Value:
        """How many elements of its line lie before an element."""
        return b.logic("and", b.value(place, I64), self.lanes - 1)
