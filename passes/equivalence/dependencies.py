"""The leaves and cut values that a source depends on, without unread parts.

A product with two concatenated weights depends on both, each half of its result on one. So a source
is followed with the ranges in which it is read: a term whose guards or reads are out of bounds
everywhere in these ranges adds nothing. The answer may contain more than is needed
(ranges are boxes), never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ...dialects.canonical_scope import Apply, Expr, Guard, Leaf, Read, Reduce, Scope, Source
from ...dialects.index import Index, range_of

# For each dim the first and the last position that is read.
Box: TypeAlias = "tuple[tuple[int, int], ...]"

# Scopes nested deeper than this depend on everything they read.
MAX_NESTED = 24


@dataclass
class Dependencies:
    """Tokens of leaves and cut sources that sources depend on."""

    cut: frozenset[str] = frozenset()  # tokens taken as given
    known: dict[tuple[str, Box], frozenset[str]] = field(
        default_factory=dict[tuple[str, Box], frozenset[str]]
    )
    nested: int = 0  # depth of the scopes now followed

    def of(self, source: Source) -> frozenset[str]:
        """The dependencies of a whole source, even if it is cut itself."""
        if not isinstance(source, Scope):
            return self._within(source, _full_ranges(source))
        return self._opened(source, _full_ranges(source))

    def _within(self, source: Source, box: Box) -> frozenset[str]:
        if isinstance(source, Leaf) and source.data is not None:
            return frozenset()
        if not isinstance(source, Scope) or source.token in self.cut:
            return frozenset((source.token,))
        return self._opened(source, box)

    def _opened(self, source: Scope, box: Box) -> frozenset[str]:
        if self.nested >= MAX_NESTED:
            box = _full_ranges(source)
        key = (source.token, box)
        if key not in self.known:
            self.nested += 1
            self.known[key] = frozenset(self._expression(source.expr, box))
            self.nested -= 1
        return self.known[key]

    def _expression(self, expr: Expr, box: Box) -> Iterator[str]:
        for term in expr.terms:
            wide = (*box, *((0, n - 1) for n in term.sums))
            if any(_is_outside(f, wide) for f in term.factors):
                continue
            for f in term.factors:
                match f:
                    case Read(source, index):
                        ranges = [_range(e, wide) for e in index]
                        yield from self._within(source, _clipped(ranges, source.shape))
                    case Apply(_, args, depth):
                        for arg in args:
                            yield from self._expression(arg, wide[:depth])
                    case Reduce(_, sums, arg, depth):
                        inner = (*wide[:depth], *((0, n - 1) for n in sums))
                        yield from self._expression(arg, inner)
                    case _:
                        pass


def _full_ranges(source: Source) -> Box:
    return tuple((0, n - 1) for n in source.shape)


def _range(index: Index, box: Box) -> tuple[int, int]:
    """The range of an index whose iterators are in a box."""
    images = [Index.iterator(k) + low for k, (low, _) in enumerate(box)]
    return range_of(index.substitute(images), tuple(high - low + 1 for low, high in box))


def _is_outside(f: object, box: Box) -> bool:
    """Whether a factor is 0 everywhere in the box, as far as ranges show."""
    match f:
        case Guard(index, extent):
            low, high = _range(index, box)
            return high < 0 or low >= extent
        case Read(source, index, outside) if outside == 0.0:
            ranges = [_range(e, box) for e in index]
            return any(b < 0 or a >= n for (a, b), n in zip(ranges, source.shape, strict=True))
        case _:
            return False


def _clipped(ranges: Sequence[tuple[int, int]], shape: Sequence[int]) -> Box:
    """The part of ranges inside a shape; if it is empty, the shape's first position."""
    clipped = [(max(a, 0), min(b, n - 1)) for (a, b), n in zip(ranges, shape, strict=True)]
    return tuple((a, b) if a <= b else (0, 0) for a, b in clipped)
