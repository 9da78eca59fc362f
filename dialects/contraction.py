"""Recognise contractions: sums of products of two reads, perhaps under guards.

    out[batch, m, n] = sum over k of first[batch, m, k] * second[batch, k, n]

Iterators form groups by where they occur: in the first operand, in the second, in the output:

    batch  yes yes yes      m  yes no yes      n  no yes yes      k  yes yes no

If a position of the output and a tap of a window move along one dim of an operand together, the
contraction is a convolution (convolution.py). Iterators of extent 1 are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

from .canonical_types import Guard
from .index import Index, stays_inside

Extents = tuple[int, ...]
GROUPS = ("batch", "m", "n", "k")
_MASKS = {
    (True, True, True): "batch",
    (True, False, True): "m",
    (False, True, True): "n",
    (True, True, False): "k",
}
R = TypeVar("R")


@dataclass(frozen=True)
class Operand(Generic[R]):
    """One operand: source, index and shape; `guards` belong to it. `read` is its original form."""

    read: R
    index: tuple[Index, ...]
    shape: Extents
    guards: tuple[Guard, ...] = ()

    @cached_property
    def iterators(self) -> frozenset[int]:
        """The iterators in the index."""
        return frozenset[int]().union(*(e.iterators for e in self.index))

    @cached_property
    def uses(self) -> frozenset[int]:
        """The iterators in the index and the guards."""
        return self.iterators.union(*(g.index.iterators for g in self.guards))

    def stays_inside(self, extents: Extents) -> bool:
        """Whether it is never read outside its shape."""
        return stays_inside(self.index, self.shape, extents)


@dataclass(frozen=True)
class Contraction(Generic[R]):
    """A sum over iterators `rank`, `rank` + 1 ... of first * second, for each earlier iterator."""

    extents: Extents
    rank: int
    first: Operand[R]
    second: Operand[R]

    @property
    def operands(self) -> tuple[Operand[R], Operand[R]]:
        return self.first, self.second

    def swapped(self) -> Contraction[R]:
        """The same with swapped operands."""
        return replace(self, first=self.second, second=self.first)

    @cached_property
    def loose(self) -> tuple[int, ...]:
        """Iterators in no group: sums over one operand only, traversals in neither."""
        return tuple(k for k, n in enumerate(self.extents) if n != 1 and self._mask(k) is None)

    @cached_property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The iterators of each group, in order."""
        found: dict[str, tuple[int, ...]] = dict.fromkeys(GROUPS, ())
        for k, n in enumerate(self.extents):
            name = self._mask(k)
            if n != 1 and name is not None:
                found[name] += (k,)
        return found

    def _mask(self, iterator: int) -> str | None:
        first, second = (iterator in operand.uses for operand in self.operands)
        return _MASKS.get((first, second, iterator < self.rank))


def with_guards(
    first: Operand[R], second: Operand[R], guards: Sequence[Guard]
) -> tuple[Operand[R], Operand[R]] | None:
    """Each guard with the operand that has all its iterators; None if one fits neither."""
    parts = [first, second]
    for guard in guards:
        owner = next((p for p, o in enumerate(parts) if guard.index.iterators <= o.iterators), None)
        if owner is None:
            return None
        parts[owner] = replace(parts[owner], guards=(*parts[owner].guards, guard))
    return parts[0], parts[1]


@dataclass(frozen=True)
class Window:
    """`stride * outer + dilation * inner` in the first operand; a negative dilation flips it."""

    outer: int
    inner: int
    stride: int
    dilation: int


def window_of(operand: Operand[Any], outer: int, inner: int) -> Window | None:
    """The window if both iterators' coefficient columns in an operand are proportional."""
    ratio: Fraction | None = None
    for e in (*operand.index, *(g.index for g in operand.guards)):
        a, b = e.coefficient(outer), e.coefficient(inner)
        if a == 0 and b == 0:
            continue
        if a == 0 or b == 0 or (ratio is not None and ratio != Fraction(a, b)):
            return None
        ratio = Fraction(a, b)
    if ratio is None:
        return None
    sign = 1 if ratio.numerator > 0 else -1
    return Window(outer, inner, ratio.numerator * sign, ratio.denominator * sign)
