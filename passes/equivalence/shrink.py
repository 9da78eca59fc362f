"""Shrink sizes that cannot matter: equality at a small size implies equality at the real one.

Tensor dims and iterators that are joined by plain, full-extent indexing form a class, over both
expressions at once. A class is pure if nothing else touches it: no other index, no guard; no
expression has two of its iterators, no tensor two of its dims; no reduction other than a sum runs
over it; and every sum over it reads a leaf at it, in each term. Both expressions then commute with
permutations of the class, and the coefficient of a monomial is decided by the values of the class
that the monomial touches. Let s be the most factors of the class in one monomial, plus one if it is
an output dim (for arguments of functions, which are compared with each other: plus two). If two
expressions differ at size N > s, some monomial has two coefficients; permute the values it touches
into the first s: they differ at size s. Size 1 is never used, where an iterator and 0 are the same.

Functions are variables named by their arguments; arguments are compared by the same theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ...dialects.canonical_scope import (
    Apply,
    Expr,
    Extents,
    Factor,
    Guard,
    Leaf,
    Read,
    Reduce,
    Source,
    add,
    apply,
    bind,
    constant,
    factor,
    leaf,
    multiply,
    reduce,
)
from ...dialects.index import Index

# An output dim ("out", k), a dim of a source (token, k), or an iterator of a sum ("sum", number).
Node: TypeAlias = tuple[str, int]


@dataclass
class _Classes:
    """Union-find over nodes, with what is known of each class."""

    parent: dict[Node, Node] = field(default_factory=dict[Node, Node])
    extent: dict[Node, int] = field(default_factory=dict[Node, int])
    bad: set[Node] = field(default_factory=set[Node])
    together: list[tuple[Node, ...]] = field(default_factory=list[tuple[Node, ...]])

    def root(self, node: Node) -> Node:
        self.parent.setdefault(node, node)
        while self.parent[node] != node:
            self.parent[node] = self.parent[self.parent[node]]
            node = self.parent[node]
        return node

    def join(self, a: Node, b: Node) -> None:
        self.parent[self.root(a)] = self.root(b)


def _plain_iterator(e: Index, extents: Sequence[int], size: int) -> int | None:
    """The iterator that an index is, if it runs over the whole dim."""
    if e.constant != 0 or len(e.terms) != 1 or e.terms[0][1] != 1:
        return None
    k = e.terms[0][0]
    return k if isinstance(k, int) and extents[k] == size else None


class _Survey:
    """Walk both expressions: first the classes, then what each level needs of them."""

    def __init__(self, shape: Extents):
        self.classes = _Classes()
        self.outer = [("out", k) for k in range(len(shape))]
        self.shape = shape
        self.sums = 0
        # (nodes of the level's free iterators, terms as (sum nodes, factors with their nodes))
        self.levels: list[_Level] = []
        for node, n in zip(self.outer, shape, strict=True):
            self.classes.extent[node] = n
        self.classes.together.append(tuple(self.outer))

    def visit(self, expr: Expr, env: list[Node], extents: Extents, argument: bool) -> None:
        """Record an expression whose free iterators are these nodes."""
        level = _Level(tuple(env), argument)
        self.levels.append(level)
        for term in expr.terms:
            sums = [self._fresh(n) for n in term.sums]
            wide, sizes = [*env, *sums], extents + term.sums
            self.classes.together.append(tuple(wide))
            line = _Line(tuple(sums))
            level.lines.append(line)
            for f in term.factors:
                self._factor(f, wide, sizes, line)

    def _fresh(self, extent: int) -> Node:
        self.sums += 1
        node = ("sum", self.sums)
        self.classes.extent[node] = extent
        return node

    def _factor(self, f: Factor, env: list[Node], extents: Extents, line: _Line) -> None:
        touched = tuple(env[k] for k in sorted(f.iterators))
        match f:
            case Read(source, index, outside):
                plain = isinstance(source, Leaf) and source.data is None and outside == 0.0
                self._read(source, index, env, extents, plain)
                line.factors.append((touched, plain))
            case Guard():
                self.classes.bad.update(touched)
            case Apply(_, args, depth):
                line.factors.append((touched, False))
                for arg in args:
                    self.visit(arg, env[:depth], extents[:depth], argument=True)
            case Reduce(_, sums, arg, depth):
                line.factors.append((touched, False))
                inner = [self._fresh(n) for n in sums]
                self.classes.bad.update(inner)
                self.visit(arg, [*env[:depth], *inner], extents[:depth] + sums, argument=True)
            case _:
                pass

    def _read(
        self,
        source: Source,
        index: tuple[Index, ...],
        env: list[Node],
        extents: Extents,
        plain: bool,
    ) -> None:
        self.classes.together.append(tuple((source.token, d) for d in range(len(index))))
        for d, (e, size) in enumerate(zip(index, source.shape, strict=True)):
            node = (source.token, d)
            self.classes.extent[node] = size
            k = _plain_iterator(e, extents, size) if plain else None
            if k is not None:
                self.classes.join(node, env[k])
            else:
                self.classes.bad.add(node)
                self.classes.bad.update(env[k] for k in e.iterators)


@dataclass
class _Line:
    """One term: nodes of its sums, and of each factor the nodes it touches, and if it is a leaf."""

    sums: tuple[Node, ...]
    factors: list[tuple[tuple[Node, ...], bool]] = field(
        default_factory=list[tuple[tuple[Node, ...], bool]]
    )


@dataclass
class _Level:
    """One expression: nodes of its free iterators, and its terms."""

    free: tuple[Node, ...]
    argument: bool
    lines: list[_Line] = field(default_factory=list[_Line])


def shrink(a: Expr, b: Expr, shape: Extents, above: int = 0) -> tuple[Expr, Expr, Extents]:
    """Both expressions and the shape at the least sizes that decide whether they are equal.

    Args:
        above: extents up to this are kept.
    """
    survey = _Survey(shape)
    for expr in (a, b):
        survey.visit(expr, list(survey.outer), shape, argument=False)
    sizes = _sizes(survey, above)
    if not sizes:
        return a, b, shape
    rebuilder = _Rebuilder(survey, sizes)
    small = tuple(rebuilder.size(node) for node in survey.outer)
    first = rebuilder.expr(a, list(survey.outer), shape, small)
    second = rebuilder.expr(b, list(survey.outer), shape, small)
    return first, second, small


def _sizes(survey: _Survey, above: int) -> dict[Node, int]:
    """The new extent of each class that is pure, larger than `above`, and gets smaller."""
    classes = survey.classes
    bad = {classes.root(node) for node in classes.bad}
    for group in classes.together:
        roots = [classes.root(node) for node in dict.fromkeys(group)]
        bad |= {root for root in roots if roots.count(root) > 1}
    need: dict[Node, int] = {}
    for level in survey.levels:
        _measure_level(level, classes, bad, need)
    found: dict[Node, int] = {}
    for root, count in need.items():
        extent = classes.extent.get(root, 0)
        if root not in bad and extent > above and max(2, count) < extent:
            found[root] = max(2, count)
    return found


def _measure_level(level: _Level, classes: _Classes, bad: set[Node], need: dict[Node, int]) -> None:
    """Raise `need` to what one expression asks of each class, or find the class bad."""
    free = {classes.root(node) for node in level.free}
    extra = 2 if level.argument else 1
    for root in sorted(free):
        need[root] = max(need.get(root, 0), extra)
    for line in level.lines:
        touched = [({classes.root(n) for n in nodes}, leaf_) for nodes, leaf_ in line.factors]
        for root in {classes.root(n) for n in line.sums}:
            if not any(leaf_ and root in roots for roots, leaf_ in touched):
                bad.add(root)
        for root in sorted(set[Node]().union(*(roots for roots, _ in touched))):
            count = sum(root in roots for roots, _ in touched)
            need[root] = max(need.get(root, 0), count + (extra if root in free else 0))


class _Rebuilder:
    """Write the expressions again at the new sizes, walking as the survey did."""

    def __init__(self, survey: _Survey, sizes: dict[Node, int]):
        self.classes = survey.classes
        self.sizes = sizes
        self.sums = 0

    def size(self, node: Node) -> int:
        return self.sizes.get(self.classes.root(node), self.classes.extent[node])

    def _fresh(self) -> Node:
        self.sums += 1
        return ("sum", self.sums)

    def expr(self, expr: Expr, env: list[Node], old: Extents, new: Extents) -> Expr:
        found: list[Expr] = []
        for term in expr.terms:
            sums = [self._fresh() for _ in term.sums]
            wide, sizes = [*env, *sums], tuple(self.size(node) for node in sums)
            value = constant(term.coefficient)
            for f in term.factors:
                made = self._factor(f, wide, old + term.sums, new + sizes)
                value = multiply(value, made, new + sizes)
            found.append(bind(value, new, sizes))
        return add(*found)

    def _factor(self, f: Factor, env: list[Node], old: Extents, new: Extents) -> Expr:
        match f:
            case Read(source, index, outside) if isinstance(source, Leaf):
                shape = [self.size((source.token, d)) for d in range(len(source.shape))]
                small = source
                if tuple(shape) != source.shape:
                    small = leaf(f"shrunk {source.token}", shape, source.element)
                return factor(Read(small, index, outside), new)
            case Apply(function, args, depth):
                parts = [self.expr(a, env[:depth], old[:depth], new[:depth]) for a in args]
                return apply(function, parts, new)
            case Reduce(kind, sums, arg, depth):
                inner = [self._fresh() for _ in sums]
                part = self.expr(
                    arg, [*env[:depth], *inner], old[:depth] + sums, new[:depth] + sums
                )
                return reduce(kind, sums, part, new[:depth])
            case _:
                return factor(f, new)
