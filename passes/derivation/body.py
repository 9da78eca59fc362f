"""The operand of derivation rules: scopes that are one sum of products, opened.

    value at x = coefficient * sum over s of the product of factors (reads and guards)

A `SumOfProducts` need not be canonical: its sums keep their order, so that a user can name them.
`build` gives the canonical scope back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from xdsl.ir import Attribute

from ...dialects.canonical_scope import collect, normal
from ...dialects.canonical_types import (
    ONE,
    Extents,
    Factor,
    Guard,
    Read,
    Scope,
    Source,
    Term,
    scope,
)
from ...dialects.index import Index, iterators, range_of

Images: TypeAlias = tuple[Index, ...]
Link: TypeAlias = "Read | Guard"


@dataclass(frozen=True)
class SumOfProducts:
    """One sum of products; iterators are the traversals, then the sums."""

    shape: Extents  # extents of the traversals
    sums: Extents  # extents of the sums
    coefficient: Fraction
    factors: tuple[Link, ...]
    element: Attribute

    @property
    def extents(self) -> Extents:
        return self.shape + self.sums

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def reads(self) -> list[Read]:
        return [f for f in self.factors if isinstance(f, Read)]

    @property
    def guards(self) -> list[Guard]:
        return [f for f in self.factors if isinstance(f, Guard)]

    def rows(self) -> Iterator[tuple[Index, int]]:
        """Every index with the extent that bounds it: outside it, the body is 0."""
        for f in self.factors:
            yield from rows_of(f)

    def scope(self) -> Scope:
        """The canonical scope."""
        return build(self.shape, self.sums, self.factors, self.element, self.coefficient)


def rows_of(factor: Link) -> list[tuple[Index, int]]:
    """The indices of a factor and the extents outside which it is 0."""
    if isinstance(factor, Guard):
        return [(factor.index, factor.extent)]
    return list(zip(factor.index, factor.source.shape, strict=True))


def build(
    shape: Sequence[int],
    sums: Sequence[int],
    factors: Iterable[Factor],
    element: Attribute,
    coefficient: Fraction = ONE,
) -> Scope:
    """The canonical scope that is one sum of products."""
    extents = tuple(shape)
    terms = normal((coefficient, tuple(sums), tuple(factors)), extents)
    return scope(extents, element, collect(terms))


@lru_cache(maxsize=16384)
def body_of(source: Source) -> SumOfProducts | None:
    """The body of a scope that is one sum of products of reads and guards; else None."""
    if not isinstance(source, Scope) or len(source.expr.terms) != 1:
        return None
    term = source.expr.terms[0]
    links = links_of(term)
    if links is None:
        return None
    return SumOfProducts(source.shape, term.sums, term.coefficient, links, source.element)


def links_of(term: Term) -> tuple[Link, ...] | None:
    """The factors of a term, if they are reads with 0 outside, and guards."""
    links = [f for f in term.factors if isinstance(f, Read | Guard)]
    plain = all(not isinstance(f, Read) or f.outside == 0.0 for f in links)
    return tuple(links) if plain and len(links) == len(term.factors) else None


def used_by(factor: Link) -> frozenset[int]:
    """The iterators in the indices of a factor."""
    return frozenset[int]().union(*(e.iterators for e, _ in rows_of(factor)))


def substituted(factor: Link, images: Sequence[Index]) -> Link:
    """The factor with iterator k replaced by images[k]; not normalised."""
    if isinstance(factor, Guard):
        return Guard(factor.index.substitute(images), factor.extent)
    return Read(factor.source, tuple(e.substitute(images) for e in factor.index))


def mapped(factor: Link, change: Callable[[Index], Index]) -> Link:
    """The factor with every index changed."""
    if isinstance(factor, Guard):
        return Guard(change(factor.index), factor.extent)
    return Read(factor.source, tuple(change(e) for e in factor.index))


def renaming(count: int, kept: Sequence[int]) -> list[Index]:
    """Images that number the kept iterators 0, 1, ...; other iterators become 0."""
    images = [Index(0)] * count
    for position, k in enumerate(kept):
        images[k] = Index.iterator(position)
    return images


def guards_of(index: Sequence[Index], shape: Sequence[int], extents: Extents) -> list[Guard]:
    """Guards that a read is inside the shape, where it can leave it."""
    found: list[Guard] = []
    for e, size in zip(index, shape, strict=True):
        low, high = range_of(e, extents)
        if low < 0 or high >= size:
            found.append(Guard(e, size))
    return found


__all__ = ["Images", "Link", "SumOfProducts", "body_of", "build", "guards_of", "iterators"]


def together(body: SumOfProducts, others: Iterable[int]) -> list[tuple[int, int]]:
    """Pairs of a traversal and another iterator with the same coefficient in some index."""
    found: dict[tuple[int, int], None] = {}
    for row, _ in body.rows():
        used = {a: c for a, c in row.terms if isinstance(a, int)}
        for k in sorted(used):
            pairs = [(k, j) for j in others if j != k and used.get(j) == used[k]]
            found |= dict.fromkeys(pairs if k < body.rank else [])
    return list(found)
