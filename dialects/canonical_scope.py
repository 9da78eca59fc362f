"""Canonical scopes: the interned value form of `algebra.scope`.

A scope's value at the traversal point x is an expression over the iterators x,

    expr = sum over terms of coefficient * (sum over s of product of factors)

with a rational coefficient and, for each term, its own summation iterators s. A factor is a read
`T[index]`, a guard `[0 <= index < extent]`, a function applied to expressions, or a reduction other
than a sum. Iterators are numbered: the traversals first, then those of each enclosing sum.

One scope has one form: indices are normal (index.py), iterators of extent 1 are 0, sums over an
iterator that nothing reads are coefficients, a guard that pins a sum iterator is substituted, sums
are ordered by how they are read (ties by the least result), operands and terms are sorted, like
terms are one, terms that are always out of bounds vanish. Traversals keep their places: swapping
two gives another scope. Forms that differ may still be equal; equal forms are.

Exact arithmetic is meant: coefficients are the exact rationals of the literals.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from typing import TypeAlias
from weakref import WeakValueDictionary

from xdsl.ir import Attribute

from .index import Index, iterators, normalise, range_of
from .scalar_laws import simplify_call

Extents: TypeAlias = tuple[int, ...]
# A product before it is normal: coefficient, extents of further sums, factors.
Product: TypeAlias = "tuple[Fraction, Extents, tuple[Factor, ...]]"

# Past this many orders of tied sums the first one is taken: sound, no longer canonical.
MOST_ORDERS = 5040
ONE = Fraction(1)


def digest(text: str) -> str:
    """A name for a text, short and the same in every process."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# --- what is read -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Source:
    """A tensor that scopes read; equal sources are one object, named by `token`."""

    token: str
    shape: Extents
    element: Attribute


@dataclass(frozen=True, eq=False)
class Leaf(Source):
    """A tensor that is given: an input, a weight, the result of an op no scope expresses."""

    operands: tuple[Source, ...] = ()
    label: str = ""


@dataclass(frozen=True, eq=False)
class Scope(Source):
    """A tensor computed point by point; `expr` is over iterators 0 .. rank-1."""

    expr: Expr


_SOURCES: WeakValueDictionary[str, Source] = WeakValueDictionary()


def leaf(
    identity: str,
    shape: Sequence[int],
    element: Attribute,
    operands: Sequence[Source] = (),
    label: str = "",
) -> Leaf:
    """The given tensor of that identity."""
    token = "t" + digest(repr((identity, tuple(shape), str(element), [s.token for s in operands])))
    found = _SOURCES.get(token)
    if found is None:
        made = Leaf(token, tuple(shape), element, tuple(operands), label)
        found = _SOURCES.setdefault(token, made)
    assert isinstance(found, Leaf)
    return found


def scope(shape: Sequence[int], element: Attribute, expr: Expr) -> Scope:
    """The scope with that expression at each point of the shape."""
    token = "s" + digest(f"{tuple(shape)}{element}{expr.token}")
    found = _SOURCES.get(token)
    if found is None:
        found = _SOURCES.setdefault(token, Scope(token, tuple(shape), element, expr))
    assert isinstance(found, Scope)
    return found


# --- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Factor:
    """One operand of a product. `token` names it; equal tokens mean equal factors."""

    @cached_property
    def token(self) -> str:
        return render_factor(self, ())


@dataclass(frozen=True, eq=False)
class Read(Factor):
    """`source[index]`; beyond the shape 0, or `outside` where that is infinite or NaN."""

    source: Source
    index: tuple[Index, ...]
    outside: float = 0.0


@dataclass(frozen=True, eq=False)
class Guard(Factor):
    """1 where 0 <= index < extent, else 0."""

    index: Index
    extent: int


@dataclass(frozen=True, eq=False)
class Symbol(Factor):
    """A literal that is no rational: inf, -inf or nan."""

    value: str


@dataclass(frozen=True, eq=False)
class Apply(Factor):
    """A function of expressions over the same iterators; uninterpreted but for scalar_laws.py."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Reduce(Factor):
    """max, min or prod of `arg` over further iterators of the given extents."""

    kind: str
    sums: Extents
    arg: Expr


@dataclass(frozen=True, eq=False)
class Term:
    """`coefficient * sum over sums of the product of factors`."""

    coefficient: Fraction
    sums: Extents
    factors: tuple[Factor, ...]

    @cached_property
    def body(self) -> str:
        """Names the term without its coefficient."""
        return f"{list(self.sums)}{'*'.join(f.token for f in self.factors)}"


@dataclass(frozen=True, eq=False)
class Expr:
    """A sum of terms, sorted, no two alike."""

    terms: tuple[Term, ...]

    @cached_property
    def token(self) -> str:
        return "+".join(f"{t.coefficient}{t.body}" for t in self.terms)

    @property
    def constant(self) -> Fraction | None:
        """The rational it is everywhere, if it has no factor."""
        if not self.terms:
            return Fraction(0)
        only = self.terms[0]
        return only.coefficient if len(self.terms) == 1 and not only.factors else None

    @property
    def symbolic(self) -> bool:
        """Whether an infinite or undefined literal stands in it, outside of functions."""
        return any(_is_symbolic(f) for t in self.terms for f in t.factors)


ZERO = Expr(())


def _is_symbolic(factor: Factor) -> bool:
    return isinstance(factor, Symbol) or (isinstance(factor, Read) and factor.outside != 0.0)


def render_index(index: Index, names: Sequence[str]) -> str:
    """The index with iterators by name (`i3` beyond the names), in no order of theirs."""
    parts: list[str] = []
    for atom, c in index.terms:
        if isinstance(atom, int):
            name = names[atom] if atom < len(names) else f"i{atom}"
        else:
            name = f"({render_index(atom.numerator, names)}/{atom.divisor})"
        parts.append(f"{c}{name}")
    return "+".join([str(index.constant), *sorted(parts)])


def render_factor(factor: Factor, names: Sequence[str]) -> str:
    """The text that names a factor, iterators by name."""
    match factor:
        case Read(source, index, outside):
            at = ",".join(render_index(e, names) for e in index)
            return f"{source.token}[{at}]" + (f"|{outside}" if outside != 0.0 else "")
        case Guard(index, extent):
            return f"[{render_index(index, names)}<{extent}]"
        case Symbol(value):
            return f"'{value}'"
        case Apply(function, args):
            return f"f{digest(function + '(' + ';'.join(render(a, names) for a in args) + ')')}"
        case Reduce(kind, sums, arg):
            return f"r{digest(f'{kind}{sums}{render(arg, names)}')}"
        case _:
            raise TypeError(f"not a factor: {factor}")


def render(expr: Expr, names: Sequence[str]) -> str:
    """The text that names an expression, iterators by name."""
    if not names:
        return expr.token
    parts = [
        f"{t.coefficient}{list(t.sums)}{'*'.join(sorted(render_factor(f, names) for f in t.factors))}"
        for t in expr.terms
    ]
    return "+".join(sorted(parts))


# --- building -----------------------------------------------------------------------------------


def constant(value: Fraction | int) -> Expr:
    return Expr((Term(Fraction(value), (), ()),)) if value != 0 else ZERO


def collect(terms: Iterable[Term]) -> Expr:
    """Add terms: like ones become one, zeros vanish."""
    found: dict[str, Term] = {}
    for term in terms:
        other = found.get(term.body)
        if other is not None:
            term = Term(other.coefficient + term.coefficient, term.sums, term.factors)
        found[term.body] = term
    kept = [found[name] for name in sorted(found) if found[name].coefficient != 0]
    return Expr(tuple(kept))


def add(*exprs: Expr) -> Expr:
    return collect(term for expr in exprs for term in expr.terms)


def scale(expr: Expr, by: Fraction | int) -> Expr:
    if by == 0:
        return ZERO
    return Expr(tuple(Term(t.coefficient * by, t.sums, t.factors) for t in expr.terms))


def multiply(left: Expr, right: Expr, extents: Extents) -> Expr:
    """The product, distributed; both are over iterators of the extents."""
    if (c := left.constant) is not None:
        return scale(right, c)
    if (c := right.constant) is not None:
        return scale(left, c)
    pairs = product(_products(left), _products(right))
    return collect(t for a, b in pairs for t in normal(_times(a, b, len(extents)), extents))


def factor(made: Factor, extents: Extents) -> Expr:
    """The expression that is this one factor."""
    parts = map_factor(made, iterators(len(extents)), extents)
    return collect(t for part in parts for t in normal(part, extents))


def bind(expr: Expr, extents: Extents, sums: Extents) -> Expr:
    """Sum an expression over its last iterators, which run over `sums`."""
    return collect(
        term
        for t in expr.terms
        for term in normal((t.coefficient, sums + t.sums, t.factors), extents)
    )


def substitute(expr: Expr, images: Sequence[Index], extents: Extents) -> Expr:
    """Replace iterator k by `images[k]`, an index over iterators of the new extents."""
    return collect(t for part in expr.terms for t in map_term(part, images, extents))


def apply(function: str, args: Sequence[Expr], extents: Extents) -> Expr:
    """A function of expressions, simplified by the laws that hold exactly."""
    known = simplify_call(function, [(a.token, a.constant) for a in args])
    if isinstance(known, Fraction):
        return constant(known)
    kept = [constant(k) if isinstance(k, Fraction) else args[k] for k in known]
    if function in ("max", "min"):
        kept = _flat(function, kept)
        if len(kept) == 1:
            return kept[0]
    return Expr((Term(ONE, (), (Apply(function, tuple(kept)),)),))


def _flat(function: str, args: Sequence[Expr]) -> list[Expr]:
    """Operands of a nested max (min) are its own; each counts once, the order never."""
    found: dict[str, Expr] = {}
    for arg in args:
        only = arg.terms[0] if len(arg.terms) == 1 else None
        inner = only.factors[0] if only is not None and len(only.factors) == 1 else None
        plain = only is not None and only.coefficient == 1 and not only.sums
        nested = plain and isinstance(inner, Apply) and inner.function == function
        for part in inner.args if nested and isinstance(inner, Apply) else (arg,):
            found[part.token] = part
    return [found[name] for name in sorted(found)]


def _products(expr: Expr) -> list[Product]:
    return [(t.coefficient, t.sums, t.factors) for t in expr.terms]


def _times(a: Product, b: Product, depth: int) -> Product:
    """Multiply; the sums of `b` are numbered after those of `a`."""
    factors = b[2]
    if a[1] and b[1]:
        total = depth + len(a[1])
        images = [*iterators(depth), *iterators(len(b[1]), total)]
        factors = tuple(renumber(f, images) for f in factors)
    return a[0] * b[0], a[1] + b[1], a[2] + factors


def renumber(made: Factor, images: Sequence[Index]) -> Factor:
    """Rename iterators, extents staying what they are; images are iterators.

    Iterators beyond the images are those of inner sums: they stay the next ones.
    """
    shift = max((k for i in images for k in i.iterators), default=-1) + 1

    def inside(expr: Expr) -> Expr:
        terms = list[Term]()
        for t in expr.terms:
            terms.append(Term(t.coefficient, t.sums, tuple(renumber(f, wide(t.sums)) for f in t.factors)))
        return Expr(tuple(terms))

    def wide(sums: Extents) -> list[Index]:
        return [*images, *iterators(len(sums), shift)]

    match made:
        case Read(source, index, outside):
            return Read(source, tuple(e.substitute(images) for e in index), outside)
        case Guard(index, extent):
            return Guard(index.substitute(images), extent)
        case Apply(function, args):
            return Apply(function, tuple(inside(a) for a in args))
        case Reduce(kind, sums, arg):
            nested = [*images, *iterators(len(sums), shift)]
            terms = tuple(
                Term(
                    t.coefficient,
                    t.sums,
                    tuple(
                        renumber(f, [*nested, *iterators(len(t.sums), shift + len(sums))])
                        for f in t.factors
                    ),
                )
                for t in arg.terms
            )
            return Reduce(kind, sums, Expr(terms))
        case _:
            return made
