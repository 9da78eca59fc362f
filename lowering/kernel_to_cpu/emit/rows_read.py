"""Leave out work on rows that nobody reads, or that are there already.

A kernel op may say of a dim of its result that only the first rows are read, as many as an operand
says when it runs; or that the result's buffer holds the first rows before. Code asks of each piece
of work whether all that it writes lies in rows that need not be written.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ....dialects.kernel import KernelOp, physical
from .emitter import Emitter
from .types import I64, Index, Value


@dataclass(frozen=True)
class RowsRead:
    """A dim of a result of which only the first rows are read, or are there already.

    Attributes:
        dim: its number.
        operand: the number of the operand that says how many.
        step: elements from one row to the next in the result's buffer.
        period: elements from one place of the next larger dim to the next; 0 if there is none.
    """

    dim: int
    operand: int
    step: int
    period: int

    @staticmethod
    def of(op: KernelOp) -> tuple[RowsRead, ...]:
        """Those of a kernel op of which the first rows are read, as its result lies in memory."""
        return RowsRead._as_stored(op, op.rows_read)

    @staticmethod
    def kept(op: KernelOp) -> tuple[RowsRead, ...]:
        """As `of`, those of which the first rows are there already."""
        return RowsRead._as_stored(op, op.rows_kept)

    @staticmethod
    def _as_stored(op: KernelOp, counted: Sequence[tuple[int, int]]) -> tuple[RowsRead, ...]:
        strides = physical(op.type)[0]
        places = [s for s, n in zip(strides, op.type.get_shape(), strict=True) if n != 1]
        found: list[RowsRead] = []
        for dim, operand in counted:
            if op.type.get_shape()[dim] != 1:
                larger = [s for s in places if s > strides[dim]]
                found.append(RowsRead(dim, operand, strides[dim], min(larger, default=0)))
        return tuple(found)


class Skipping:
    """Skips work on rows that need not be written, in the code of one kernel.

    Args:
        counts: pointers to how many rows are read, then to how many are there already.
        kept: the dims of which rows are there already.
    """

    def __init__(
        self,
        b: Emitter,
        rows: Sequence[RowsRead],
        counts: Sequence[Value],
        kept: Sequence[RowsRead] = (),
    ) -> None:
        self.rows, self.kept = rows, kept
        self.counts = [b.load(I64, pointer) for pointer in counts]

    @staticmethod
    def of(
        b: Emitter, rows: Sequence[RowsRead], pointers: Sequence[Value]
    ) -> tuple[Skipping, list[Value]]:
        """What skips work, and the other pointers: the counts stand before that of the result."""
        *others, target = pointers
        first = len(others) - len(rows)
        return Skipping(b, rows, others[first:]), [*others[:first], target]

    @contextmanager
    def part(self, b: Emitter, place: Sequence[tuple[Index, int]], reach: int) -> Generator[None]:
        """What is emitted inside runs unless nobody reads what it writes.

        Args:
            place: the first element that it writes, as sums of products, from the element at index
                0 of all dims on.
            reach: how far behind that the last one is.
        """
        if not self.rows and not self.kept:
            yield
            return
        with b.when(self.wanted(b, place, reach)):
            yield

    @contextmanager
    def image(self, b: Emitter, number: Index) -> Generator[None]:
        """As `part`, of all of one row of the only dim."""
        if not self.rows:
            yield
            return
        (count,) = self.counts
        with b.when(b.compare("lt", b.value(number, I64), count)):
            yield

    def wanted(self, b: Emitter, place: Sequence[tuple[Index, int]], reach: int) -> Value:
        """Whether what `part` would run is read: some of what it writes, for certain if not."""
        first = b.linear(*place)
        found: Value | None = None
        limits = zip((*self.rows, *self.kept), self.counts, strict=True)
        for k, (rows, count) in enumerate(limits):
            at = b.split(first, rows.period)[1] if rows.period else first
            end = b.mul(count, rows.step)
            if k < len(self.rows):
                here = b.compare("lt", b.value(at, I64), end)
            else:
                here = b.compare("ge", b.value(b.add(at, reach), I64), end)
            if rows.period:  # into the rows of the next place of a larger dim
                beyond = b.compare("ge", b.value(b.add(at, reach), I64), rows.period)
                here = b.logic("or", here, beyond)
            found = here if found is None else b.logic("and", found, here)
        assert found is not None
        return found
