"""How far scopes reach beside a position: at smaller sizes their canonical forms may be others.

`x[h + 2 * r - 2]` for r < 3 reaches 2 + 4: in a tensor of fewer rows some r may never be inside,
and canonical scopes leave such reads out. From sizes above the reach on, a form is one formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ...dialects.canonical_scope import Apply, Expr, Extents, Guard, Read, Reduce, Scope, Source
from ...dialects.index import Index


@dataclass
class SourceNames(dict[str, str]):
    """A name for each source, by token, in the order in which they are seen.

    Attributes:
        scopes: those among them, by token.
    """

    scopes: dict[str, Scope] = field(default_factory=dict[str, Scope])

    def see(self, source: Source) -> None:
        """Give a source its name."""
        self.setdefault(source.token, f"v{len(self)}")
        if isinstance(source, Scope):
            self.scopes[source.token] = source


@dataclass(frozen=True)
class DimNumbers:
    """The numbers that dims are at some sizes.

    Attributes:
        static: those that are dims whatever the sizes, and no other dim at these.
        varying: those of the other dims.
    """

    static: frozenset[int]
    varying: frozenset[int]

    def varies(self, number: int) -> bool:
        """Whether a number of an index is a multiple of a dim that varies."""
        return number not in self.static and any(number % n == 0 for n in self.varying if n > 1)


# By the number of a dim that varies, how far an index into it may reach: one of these.
Reach: TypeAlias = "set[tuple[int, int]]"


def reach_of(scope: Scope, dims: DimNumbers) -> Reach:
    """How far the indices of a scope reach beside a position, or beside the end of a dim.

    A number in an index may itself vary with the sizes (`n - 1 - h`): then what is found here is
    another at other sizes.
    """
    found: Reach = set()
    for size, index, extents in _uses(scope.expr, scope.shape, dims):
        own = _beside(index, extents, dims)
        constants = (index.constant, size - index.constant, size + index.constant)
        found |= {(size, own + abs(c)) for c in constants}
    return found


def _uses(expr: Expr, extents: Extents, dims: DimNumbers) -> Iterator[tuple[int, Index, Extents]]:
    """Each index into a dim that varies, with that dim and the extents of its iterators."""
    for term in expr.terms:
        wide = extents + term.sums
        for f in term.factors:
            match f:
                case Read(source, index, _):
                    sizes = zip(index, source.shape, strict=True)
                    yield from ((n, e, wide) for e, n in sizes if n not in dims.static)
                case Guard(index, extent) if extent not in dims.static:
                    yield extent, index, wide
                case Apply(_, args, depth):
                    for arg in args:
                        yield from _uses(arg, wide[:depth], dims)
                case Reduce(_, sums, arg, depth):
                    yield from _uses(arg, wide[:depth] + sums, dims)
                case _:
                    pass


def _beside(index: Index, extents: Extents, dims: DimNumbers) -> int:
    """The most that iterators of fixed extents add; factors that vary count as 1."""
    total = 0
    for atom, c in index.terms:
        factor = 1 if dims.varies(c) else abs(c)
        if not isinstance(atom, int):
            own = abs(atom.numerator.constant) + _beside(atom.numerator, extents, dims)
            total += factor * (own if dims.varies(atom.divisor) else own + atom.divisor)
        elif not dims.varies(extents[atom]):
            total += factor * (extents[atom] - 1)
    return total
