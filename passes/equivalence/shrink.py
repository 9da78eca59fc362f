"""Shrink sizes that do not matter: equality at a small size implies equality at the real one.

Tensor dims and iterators that are joined by plain, full-extent indexing form a class, over both
expressions at once and all scopes that they read, down to the cut. A class is pure if nothing else
touches it. That is: no other index and no guard; no expression has two of its iterators, and no
tensor two of its dims; no reduction other than a sum runs over it; and every sum over it reads a
leaf at it, in each term, directly or through scopes. Both expressions then commute with
permutations of the class, and the coefficient of a monomial depends only on the values of the class
that the monomial touches. Let s be the most factors of the class in one monomial, plus one if it is
an output dim (for arguments of functions, which are compared with each other at two positions: plus
two). If two expressions differ at size N > s, some monomial has two coefficients; permute the
values it touches into the first s: they differ at size s. Size 1 is never used: there an iterator
and 0 are the same.

Functions are variables named by their arguments; arguments are compared by the same theorem. A read
of a scope represents the scope's expression. Its monomials have the factors of all scopes that they
are multiplied from. A pure dim of a scope is only ever indexed by an iterator of its class, so
replacing the read by the expression introduces no other index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    Scope,
    Source,
    add,
    apply,
    bind,
    constant,
    factor,
    leaf,
    multiply,
    reduce,
    scope,
)
from ...dialects.index import Index
from .evaluator import dependency_order, sources_of
from .inline import AT_THE_CUT

# An output dim ("out", k), a dim of a source (token, k), or an iterator of a sum ("sum", number).
Node: TypeAlias = tuple[str, int]
# Before the token of a source whose place a smaller one takes.
_SMALL = "shrunk "


@dataclass
class _Classes:
    """Union-find over nodes, with the known facts about each class."""

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
    """The iterator that an index is, if it covers the whole dim."""
    if e.constant != 0 or len(e.terms) != 1 or e.terms[0][1] != 1:
        return None
    k = e.terms[0][0]
    return k if isinstance(k, int) and extents[k] == size else None


@dataclass
class _Part:
    """One factor: the nodes it touches, and its kind.

    Attributes:
        leaf: whether it is a tensor of arbitrary values, read inside.
        scope: the token of the scope that it reads, if any.
        product: the multiplied expressions, if it is a call of "mul".
    """

    touched: tuple[Node, ...]
    leaf: bool = False
    scope: str | None = None
    product: tuple[_Level, ...] = ()


@dataclass
class _Level:
    """One expression: nodes of its free iterators, and the sums and factors of each term."""

    free: tuple[Node, ...]
    argument: bool
    lines: list[tuple[tuple[Node, ...], list[_Part]]] = field(
        default_factory=list[tuple[tuple[Node, ...], list[_Part]]]
    )


class _Survey:
    """Walk both expressions and the scopes they read; collect classes and each level's reads."""

    def __init__(self, shape: Extents, cut: frozenset[str]):
        self.classes = _Classes()
        self.cut = cut
        self.outer = [("out", k) for k in range(len(shape))]
        self.sums = 0
        self.levels: list[_Level] = []
        self.scopes: dict[str, _Level] = {}
        self._new(self.outer, shape)

    def _new(self, nodes: Sequence[Node], extents: Extents) -> None:
        for node, n in zip(nodes, extents, strict=True):
            self.classes.extent[node] = n
        self.classes.together.append(tuple(nodes))

    def scope(self, source: Scope) -> None:
        """Record a scope, after the scopes it reads."""
        env = _dims(source)
        self._new(env, source.shape)
        self.scopes[source.token] = self.visit(source.expr, env, source.shape, argument=False)

    def visit(self, expr: Expr, env: list[Node], extents: Extents, argument: bool) -> _Level:
        """Record an expression with these nodes as free iterators."""
        level = _Level(tuple(env), argument)
        self.levels.append(level)
        for term in expr.terms:
            sums = [self._fresh(n) for n in term.sums]
            wide, sizes = [*env, *sums], extents + term.sums
            self.classes.together.append(tuple(wide))
            parts = [self._factor(f, wide, sizes) for f in term.factors]
            level.lines.append((tuple(sums), parts))
        return level

    def _fresh(self, extent: int) -> Node:
        self.sums += 1
        node = ("sum", self.sums)
        self.classes.extent[node] = extent
        return node

    def _factor(self, f: Factor, env: list[Node], extents: Extents) -> _Part:
        touched = tuple(env[k] for k in sorted(f.iterators))
        match f:
            case Read(source, index, outside):
                opened = source.token in self.scopes
                given = isinstance(source, Leaf) and source.data is None
                given = given or source.token in self.cut
                plain = (given or opened) and outside == 0.0
                self._read(source, index, env, extents, plain)
                return _Part(touched, given and plain, source.token if opened else None)
            case Guard():
                self.classes.bad.update(touched)
                return _Part(touched)
            case Apply(function, args, depth):
                product = function == "mul"
                levels = [self.visit(a, env[:depth], extents[:depth], not product) for a in args]
                return _Part(touched, product=tuple(levels) if product else ())
            case Reduce(_, sums, arg, depth):
                inner = [self._fresh(n) for n in sums]
                self.classes.bad.update(inner)
                self.visit(arg, [*env[:depth], *inner], extents[:depth] + sums, argument=True)
                return _Part(touched)
            case _:
                return _Part(())

    def _read(
        self,
        source: Source,
        index: tuple[Index, ...],
        env: list[Node],
        extents: Extents,
        plain: bool,
    ) -> None:
        self.classes.together.append(tuple(_dims(source)))
        for node, e, size in zip(_dims(source), index, source.shape, strict=True):
            self.classes.extent[node] = size
            k = _plain_iterator(e, extents, size) if plain else None
            if k is not None:
                self.classes.join(node, env[k])
            else:
                self.classes.bad.add(node)
                self.classes.bad.update(env[k] for k in e.iterators)


class _Needs:
    """How many values of each class one monomial touches, and which sums a leaf follows."""

    def __init__(self, survey: _Survey):
        self.root = survey.classes.root
        self.degrees: dict[str, Counter[Node]] = {}
        self.leaves: dict[str, set[Node]] = {}
        for token, level in survey.scopes.items():  # in dependency order
            self.degrees[token] = self.degree(level)
            lines = [self.followed(parts) for _, parts in level.lines]
            self.leaves[token] = set[Node]().union(*lines).intersection(*lines)

    def roots(self, nodes: Iterable[Node]) -> set[Node]:
        return {self.root(node) for node in nodes}

    def degree(self, level: _Level) -> Counter[Node]:
        """For each class the most factors that touch it, with scopes opened."""
        most = Counter[Node]()
        for _, parts in level.lines:
            total = Counter[Node]()
            for part in parts:
                total.update(self._of_part(part))
            most |= total
        return most

    def _of_part(self, part: _Part) -> Counter[Node]:
        if part.scope is not None:
            return self.degrees[part.scope]
        if part.product:
            total = Counter[Node]()
            for level in part.product:
                total.update(self.degree(level))
            return total
        return Counter(self.roots(part.touched))

    def followed(self, parts: Iterable[_Part]) -> set[Node]:
        """Classes of a term's iterators at which each of its monomials reads a leaf."""
        found = set[Node]()
        for part in parts:
            if part.leaf:
                found |= self.roots(part.touched)
            elif part.scope is not None:
                found |= self.roots(part.touched) & self.leaves[part.scope]
        return found


Shrinking: TypeAlias = "tuple[int, int]"  # an extent, and the smallest that decides in its place


@dataclass(frozen=True)
class Shrunk:
    """Two expressions at the smallest sizes that decide whether they are equal."""

    first: Expr
    second: Expr
    shape: Extents
    shrinkings: tuple[Shrinking, ...] = ()


def shrink(
    a: Expr, b: Expr, shape: Extents, above: int = 0, cut: frozenset[str] = frozenset()
) -> tuple[Expr, Expr, Extents]:
    """Both expressions and the shape of `shrunk`."""
    found = shrunk(a, b, shape, above, cut)
    return found.first, found.second, found.shape


def shrunk(
    a: Expr, b: Expr, shape: Extents, above: int = 0, cut: frozenset[str] = frozenset()
) -> Shrunk:
    """Both expressions and the shape at the smallest sizes that decide equality.

    Args:
        above: extents up to this are kept.
        cut: tokens of scopes that are taken as given, like leaves.
    """
    survey, scopes = _surveyed(a, b, shape, cut)
    sizes = _sizes(survey, above)
    if not sizes:
        return Shrunk(a, b, shape)
    made = _Rebuilder(survey, sizes).pair(a, b, shape, scopes)
    pairs = {(survey.classes.extent[root], small) for root, small in sizes.items()}
    return Shrunk(*made, tuple(sorted(pairs)))


def statement(
    a: Expr, b: Expr, shape: Extents, cut: frozenset[str], names: Mapping[str, str]
) -> str:
    """What `a = b` says, as a text in which sources have names in place of their tokens.

    A token depends on the sizes of everything below it. Texts of two statements are equal only if
    they say the same, of values of the same names.
    """
    survey, scopes = _surveyed(a, b, shape, cut)
    first, second, _ = _Renamer(survey, names).pair(a, b, shape, scopes)
    return f"{first.token} = {second.token} over {shape}"


def _surveyed(a: Expr, b: Expr, shape: Extents, cut: frozenset[str]) -> tuple[_Survey, list[Scope]]:
    survey = _Survey(shape, cut)
    scopes = _scopes((a, b), cut)
    for source in scopes:
        survey.scope(source)
    for expr in (a, b):
        survey.visit(expr, list(survey.outer), shape, argument=False)
    return survey, scopes


def _scopes(exprs: Iterable[Expr], cut: frozenset[str]) -> list[Scope]:
    """The scopes that expressions read, above the cut, each after those it reads."""
    found: dict[str, Scope] = {}
    for expr in exprs:
        for source in sources_of(expr):
            for node in dependency_order(source, cut):
                if isinstance(node, Scope) and node.token not in cut:
                    found.setdefault(node.token, node)
    return list(found.values())


def _dims(source: Source) -> list[Node]:
    return [(source.token, d) for d in range(len(source.shape))]


def _sizes(survey: _Survey, above: int) -> dict[Node, int]:
    """The new extent of each pure class that is larger than `above` and gets smaller."""
    classes = survey.classes
    bad = {classes.root(node) for node in classes.bad}
    for group in classes.together:
        roots = [classes.root(node) for node in dict.fromkeys(group)]
        bad |= {root for root in roots if roots.count(root) > 1}
    needs, need = _Needs(survey), Counter[Node]()
    for level in survey.levels:
        for sums, parts in level.lines:
            bad |= needs.roots(sums) - needs.followed(parts)
        count, free = needs.degree(level), needs.roots(level.free)
        count.update(dict.fromkeys(free | count.keys(), 2) if level.argument else free)
        need |= count
    found: dict[Node, int] = {}
    for root, count in need.items():
        extent = classes.extent.get(root, 0)
        if root not in bad and extent > above and max(2, count) < extent:
            found[root] = max(2, count)
    return found


class _Rebuilder:
    """Rewrite the expressions for the new sizes, in the survey's order."""

    def __init__(self, survey: _Survey, sizes: dict[Node, int]):
        self.classes = survey.classes
        self.sizes = sizes
        self.sums = 0
        self.scopes: dict[str, Scope] = {}

    def pair(
        self, a: Expr, b: Expr, shape: Extents, scopes: Iterable[Scope]
    ) -> tuple[Expr, Expr, Extents]:
        """Rewrite the scopes, then both expressions; also their new shape."""
        for source in scopes:
            self.scope(source)
        outer = [("out", k) for k in range(len(shape))]
        small = tuple(self.size(node) for node in outer)
        return self.expr(a, outer, shape, small), self.expr(b, outer, shape, small), small

    def size(self, node: Node) -> int:
        return self.sizes.get(self.classes.root(node), self.classes.extent[node])

    def _fresh(self) -> Node:
        self.sums += 1
        return ("sum", self.sums)

    def scope(self, source: Scope) -> None:
        """Rewrite a scope, after the scopes it reads."""
        shape = tuple(self.size(node) for node in _dims(source))
        made = self.expr(source.expr, _dims(source), source.shape, shape)
        self.scopes[source.token] = scope(shape, source.element, made)

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
            case Read(source, index, outside):
                return factor(Read(self._source(source), index, outside), new)
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

    def _source(self, source: Source) -> Source:
        if source.token in self.scopes:
            return self.scopes[source.token]
        shape = [self.size(node) for node in _dims(source)]
        if tuple(shape) == source.shape:
            return source
        return leaf(f"{_SMALL}{_original(source)}", shape, source.element)


class _Renamer(_Rebuilder):
    """Rewrite expressions so that what they read is known by its name."""

    def __init__(self, survey: _Survey, names: Mapping[str, str]):
        super().__init__(survey, {})
        self.names = names

    def _source(self, source: Source) -> Source:
        if source.token in self.scopes:
            return self.scopes[source.token]
        if isinstance(source, Leaf) and source.data is not None:
            return source
        token = _original(source)
        return leaf(f"named {self.names.get(token, token)}", source.shape, source.element)


def _original(source: Source) -> str:
    """The token of the source that a leaf stands for, a smaller one or one at the cut."""
    if isinstance(source, Leaf):
        for prefix in (_SMALL, AT_THE_CUT):
            if source.identity.startswith(prefix):
                return source.identity.removeprefix(prefix)
    return source.token
