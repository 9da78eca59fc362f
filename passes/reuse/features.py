"""Features of a schedule, and the ranges that those of a good one lie in (Definition 2).

B is the number of blocks; T that of threads, and M the elements of shared memory, of all blocks
together. A nest a whose program starts from that of b is expected to have a good one with

    B_a / B_b in [r1, r2],  T_a / T_b in [1, r2],  M_a / M_b in [1, r2]

where r1 = terms(b) / terms(a) and r2 = size(a) / size(b), ends in either order. On a CPU B counts
parallel tasks, T the vector lanes of all micro-tiles and M the elements of cache tiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from .nest import Ints, OperatorNest


@dataclass(frozen=True)
class Features:
    """Blocks, and threads and elements of shared memory over all blocks."""

    blocks: int
    threads: int
    memory: int


@dataclass(frozen=True)
class Range:
    """From `near` to `far`, whichever is larger; both belong to it."""

    near: float
    far: float

    @property
    def low(self) -> float:
        return min(self.near, self.far)

    @property
    def high(self) -> float:
        return max(self.near, self.far)

    def __contains__(self, value: float) -> bool:
        # Ratios are rounded: an end that is an integer must not be missed.
        return self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)

    def per(self, count: int) -> Range:
        """The range of a feature that is shared out over so many blocks."""
        return Range(self.near / count, self.far / count)

    def pick(self, values: Ints, one_more: bool = False) -> Ints:
        """The values inside, and perhaps the next one past the far end.

        It is taken where it is closer to the far end, by ratio, than the last one inside, or with
        `one_more`. Where no value is inside it is the closest one. (So does the paper's code; the
        paper is silent.)
        """
        inside = [value for value in values if value in self]
        if not inside:
            return (
                min(
                    values, key=lambda value: min(_apart(value, self.low), _apart(value, self.high))
                ),
            )
        up = self.far >= self.near
        past = [value for value in values if (value > inside[-1] if up else value < inside[0])]
        if not past:
            return tuple(inside)
        beyond, last = (past[0], inside[-1]) if up else (past[-1], inside[0])
        if one_more or _apart(beyond, self.far) < _apart(last, self.far):
            return (*inside, beyond) if up else (beyond, *inside)
        return tuple(inside)


def _apart(value: float, end: float) -> float:
    """The ratio of two numbers, as a distance."""
    return abs(math.log(value / end))


def ranges(a: OperatorNest, b: OperatorNest, known: Features) -> tuple[Range, Range, Range]:
    """Where a's blocks, threads and memory are expected, given those of b's best program."""
    r1, r2 = b.terms / a.terms, a.size / b.size
    return (
        Range(known.blocks * r1, known.blocks * r2),
        Range(known.threads, known.threads * r2),
        Range(known.memory, known.memory * r2),
    )


@lru_cache(maxsize=4096)
def divisors(n: int) -> Ints:
    """All of them, in order."""
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return (*small, *(n // d for d in reversed(small) if d * d != n))


def block_counts(a: OperatorNest, b: OperatorNest, blocks: Range) -> Ints:
    """Numbers of blocks of a to try: one more where both sum over the same loops."""
    return blocks.pick(divisors(a.points), one_more=a.reduction == b.reduction)


def thread_counts(block: Ints, count: int, threads: Range, most: int) -> Ints:
    """Numbers of threads of a block to try, of which there are `count`."""
    return threads.per(count).pick(tuple(n for n in divisors(math.prod(block)) if n <= most))
