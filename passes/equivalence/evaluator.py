"""Evaluate canonical scopes over a number system: residues, for the randomised check, or floats.

Leaves hold drawn numbers. The number system defines functions and reductions
(residues.py, float_lane.py). The values of two programs are compared at every position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from ...dialects.canonical_scope import (
    Apply,
    Expr,
    Extents,
    Factor,
    Guard,
    Leaf,
    Read,
    Reduce,
    Scope,
    Source,
    Symbol,
    Term,
)
from ...dialects.gather import GatherPositions
from ...dialects.index import Index, grid
from .residue_einsum import Part, contract, spread
from .residues import Lanes, Residues

# Elements of one array, all lanes; larger work is split along a traversal iterator.
MOST_ELEMENTS = 1 << 24


class TooLargeError(Exception):
    """An intermediate array would not fit the memory bound."""


class Evaluator:
    """Values of sources, memoised.

    Args:
        cut: tokens of scopes that are taken as given, like leaves.
        check: called regularly; raises to stop.
    """

    def __init__(
        self,
        field: Residues,
        cut: Iterable[str] = (),
        check: Callable[[], None] = lambda: None,
        given: Mapping[str, Lanes] | None = None,
    ):
        self.field = field
        self.cut = frozenset(cut)
        self.check = check
        self.memo: dict[str, Lanes] = dict(given or {})

    def value(self, source: Source) -> Lanes:
        """All lanes of a source, [lane, *shape]."""
        for needed in dependency_order(source, self.cut):
            if needed.token not in self.memo:
                self.check()
                self.memo[needed.token] = self.compute(needed)
        return self.memo[source.token]

    def compute(self, source: Source) -> Lanes:
        """The lanes of a source; the sources that it reads are in `memo`."""
        if isinstance(source, Scope) and source.token not in self.cut:
            return self.everywhere(source.expr, source.shape)
        if isinstance(source, Leaf) and source.data is not None:
            return self._literal(source.data, source.shape)
        return self.field.draw(source.token, source.shape)

    def _literal(self, data: Sequence[Fraction], shape: Extents) -> Lanes:
        numbers = {value: k for k, value in enumerate(dict.fromkeys(data))}
        table = np.stack([self.field.literal(value) for value in numbers], axis=1)
        positions = np.array([numbers[value] for value in data]).reshape(shape)
        return table[:, positions]

    def everywhere(self, expr: Expr, extents: Extents) -> Lanes:
        """The values of an expression at every point of the extents."""
        value, used = self.expr(expr, extents, range(len(extents)))
        shape = [extents[k] if k in used else 1 for k in range(len(extents))]
        full = (self.field.lanes, *extents)
        return np.broadcast_to(value.reshape(self.field.lanes, *shape), full)

    def expr(self, expr: Expr, extents: Extents, free: Iterable[int]) -> Part:
        """An expression over the free iterators that it uses."""
        used = tuple(k for k in free if k in expr.iterators and extents[k] != 1)
        shape = tuple(extents[k] for k in used)
        if math.prod(shape) * self.field.lanes > MOST_ELEMENTS * 4:
            raise TooLargeError(f"{math.prod(shape)} values of an expression")
        total: Lanes | None = None
        for term in expr.terms:
            value, its = self._term(term, extents)
            value = spread(value, its, used)
            total = value if total is None else self.field.reduce(total + value)
        if total is None:
            total = np.zeros((self.field.lanes, *[1] * len(used)))
        return np.broadcast_to(total, (self.field.lanes, *shape)), used

    # --- terms ---

    def _term(self, term: Term, extents: Extents) -> Part:
        wide = extents + term.sums
        first = len(extents)
        if (k := _to_cut(term, wide, first, self.field.lanes)) is not None:
            return self._in_pieces(term, extents, k)
        parts = [self.factor(f, wide) for f in term.factors]
        value, used = contract(self.field, parts, range(first))
        return self.field.scale(value, term.coefficient), used

    def _in_pieces(self, term: Term, extents: Extents, k: int) -> Part:
        """Evaluate for a range of iterator k at a time."""
        worst = _largest(term, extents + term.sums) * self.field.lanes
        step = max(1, extents[k] * MOST_ELEMENTS // worst)
        pieces: list[Lanes] = []
        used: tuple[int, ...] = ()
        for start in range(0, extents[k], step):
            self.check()
            size = min(step, extents[k] - start)
            narrow = (*extents[:k], size, *extents[k + 1 :])
            moved = _shift_term(term, k, start, len(extents) + len(term.sums))
            parts = [self.factor(f, narrow + term.sums) for f in moved.factors]
            value, used = contract(self.field, parts, range(len(extents)))
            if k not in used:  # a range of one
                used = tuple(sorted((*used, k)))
                value = np.expand_dims(value, 1 + used.index(k))
            pieces.append(value)
        value = np.concatenate(pieces, axis=1 + used.index(k))
        return self.field.scale(value, term.coefficient), used

    # --- factors ---

    def factor(self, factor: Factor, extents: Extents) -> Part:
        """A factor over its iterators; the sources that it reads are in `memo`."""
        used = tuple(k for k in sorted(factor.iterators) if extents[k] != 1)
        match factor:
            case Read(source, index, outside):
                fill = np.zeros(()) if outside == 0.0 else self.symbol(str(outside))
                positions = GatherPositions(index, source.shape, grid(extents, used))
                lanes = positions.of(self.memo[source.token], fill)
                return lanes.astype(np.float64, copy=False), used  # weights have their own type
            case Guard(index, extent):
                at = np.asarray(index.evaluate(grid(extents, used)))
                inside = ((at >= 0) & (at < extent)).astype(np.float64)
                shape = [extents[k] for k in used]
                return np.broadcast_to(inside, (self.field.lanes, *shape)), used
            case Symbol(value):
                return self.symbol(value), ()
            case Apply(function, args, depth):
                parts = [self.expr(a, extents[:depth], used) for a in args]
                given = [spread(value, its, used) for value, its in parts]
                return self.apply(function, given, [extents[k] for k in used]), used
            case Reduce(kind, sums, arg, depth):
                return self._reduction(kind, sums, arg, extents[:depth], used)
            case _:
                raise TypeError(f"not a factor: {factor}")

    def symbol(self, name: str) -> Lanes:
        return self.field.symbol(name)

    # --- functions ---

    def apply(self, function: str, args: Sequence[Lanes], shape: Sequence[int]) -> Lanes:
        """A function of arrays that broadcast to the shape."""
        full = (self.field.lanes, *shape)
        if function == "mul":
            product = args[0]
            for arg in args[1:]:
                product = self.field.reduce(product * arg)
            return np.broadcast_to(product, full)
        return self.field.apply(function, [np.broadcast_to(a, full) for a in args])

    def _reduction(
        self, kind: str, sums: Extents, arg: Expr, extents: Extents, used: Sequence[int]
    ) -> Part:
        """A reduction over the free iterators `used`."""
        wide = extents + sums
        every = (*used, *range(len(extents), len(wide)))
        if math.prod(wide[k] for k in every) * self.field.lanes > MOST_ELEMENTS * 4:
            raise TooLargeError("the operands of a reduction")
        value, its = self.expr(arg, wide, every)
        kept = tuple(k for k in every if wide[k] != 1)
        value = np.broadcast_to(
            spread(value, its, kept), (self.field.lanes, *(wide[k] for k in kept))
        )
        shape = [wide[k] for k in used]
        value = value.reshape(self.field.lanes, *shape, -1)
        value = np.moveaxis(value, -1, 1)
        return self.field.combine(kind, value), tuple(used)


# --- helpers ------------------------------------------------------------------------------------


def sources_of(expr: Expr) -> list[Source]:
    """The distinct sources an expression reads, in order."""
    found: dict[str, Source] = {}
    stack: list[Expr] = [expr]
    while stack:
        for term in stack.pop().terms:
            for f in term.factors:
                if isinstance(f, Read):
                    found.setdefault(f.source.token, f.source)
                elif isinstance(f, Apply):
                    stack.extend(f.args)
                elif isinstance(f, Reduce):
                    stack.append(f.arg)
    return list(found.values())


def dependency_order(source: Source, cut: frozenset[str] = frozenset()) -> list[Source]:
    """The sources that a source depends on, itself last, in dependency order down to the cut."""
    order: dict[str, Source] = {}
    stack = [(source, False)]
    while stack:
        node, ready = stack.pop()
        if node.token in order:
            continue
        below = isinstance(node, Scope) and node.token not in cut
        if ready or not below:
            order[node.token] = node
            continue
        assert isinstance(node, Scope)
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(sources_of(node.expr)))
    return list(order.values())


def _largest(term: Term, wide: Extents) -> int:
    """Elements per lane of the largest factor of a term."""
    sizes = [math.prod(wide[k] for k in f.iterators) for f in term.factors]
    for f in term.factors:
        if isinstance(f, Reduce):
            sizes.append(math.prod(wide[k] for k in f.iterators) * math.prod(f.sums))
    return max(sizes, default=1)


def _to_cut(term: Term, wide: Extents, first: int, lanes: int) -> int | None:
    """The traversal iterator to split a term along; None if it fits the memory bound."""
    if _largest(term, wide) * lanes <= MOST_ELEMENTS:
        return None
    sizes = {
        k: wide[k]
        for f in term.factors
        if math.prod(wide[j] for j in f.iterators) * lanes > MOST_ELEMENTS // 8
        or isinstance(f, Reduce)
        for k in f.iterators
        if k < first and wide[k] > 1
    }
    return max(sizes, key=lambda k: (sizes[k], -k)) if sizes else None


def _shift_term(term: Term, k: int, start: int, count: int) -> Term:
    """Replace iterator k by k + start, without normalising (extents are about to change)."""
    images = [Index.iterator(j) for j in range(count)]
    images[k] = images[k] + start
    return Term(term.coefficient, term.sums, tuple(_shift(f, images) for f in term.factors))


def _shift(factor: Factor, images: Sequence[Index]) -> Factor:
    def inside(expr: Expr, depth: int) -> Expr:
        terms: list[Term] = []
        for t in expr.terms:
            most = max((max(f.iterators, default=0) for f in t.factors), default=0)
            wide = [*images[:depth], *(Index.iterator(j) for j in range(depth, most + 1))]
            terms.append(Term(t.coefficient, t.sums, tuple(_shift(f, wide) for f in t.factors)))
        return Expr(tuple(terms))

    match factor:
        case Read(source, index, outside):
            return Read(source, tuple(e.substitute(images) for e in index), outside)
        case Guard(index, extent):
            return Guard(index.substitute(images), extent)
        case Apply(function, args, depth):
            return Apply(function, tuple(inside(a, depth) for a in args), depth)
        case Reduce(kind, sums, arg, depth):
            return Reduce(kind, sums, inside(arg, depth), depth)
        case _:
            return factor
