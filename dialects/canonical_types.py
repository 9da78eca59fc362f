"""The parts of canonical scopes: sources, factors, terms, expressions, and their names.

canonical_scope.py defines their meaning and builds normal forms: use its functions, not these
constructors, which check nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias
from weakref import WeakValueDictionary

from xdsl.ir import Attribute

from .index import Index
from .scalar_laws import COMMUTATIVE

Extents: TypeAlias = tuple[int, ...]
# A product before normalisation: coefficient, extents of further sums, factors.
Product: TypeAlias = "tuple[Fraction, Extents, tuple[Factor, ...]]"

ONE = Fraction(1)
# Iterators of a sum inside a function that get a name of their own.
_MAX_NESTED = 16


def digest(text: str) -> str:
    """A short name for a text, the same in every process."""
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
    """A given tensor: an input, a weight, the result of an op that no scope expresses.

    `data` holds the elements, row-major, of a literal whose numbers matter; other leaves stand for
    any tensor.
    """

    operands: tuple[Source, ...] = ()
    label: str = ""
    identity: str = ""
    data: tuple[Fraction, ...] | None = None


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
    data: tuple[Fraction, ...] | None = None,
) -> Leaf:
    """The given tensor with this identity."""
    token = "t" + digest(repr((identity, tuple(shape), str(element), [s.token for s in operands])))
    found = _SOURCES.get(token)
    if found is None:
        made = Leaf(token, tuple(shape), element, tuple(operands), label, identity, data)
        found = _SOURCES.setdefault(token, made)
    assert isinstance(found, Leaf)
    return found


def numbers(
    data: Sequence[Fraction], shape: Sequence[int], element: Attribute, label: str = "literal"
) -> Leaf:
    """The literal tensor of these elements, row-major."""
    text = ",".join(str(value) for value in data)
    return leaf(f"literal {digest(text)}", shape, element, label=label, data=tuple(data))


def scope(shape: Sequence[int], element: Attribute, expr: Expr) -> Scope:
    """The scope with this expression at each point of the shape."""
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

    @cached_property
    def iterators(self) -> frozenset[int]:
        """The iterators it depends on, without those of its own sums."""
        match self:
            case Read():
                return frozenset[int]().union(*(e.iterators for e in self.index))
            case Guard():
                return self.index.iterators
            case Apply():
                used = frozenset[int]().union(*(a.iterators for a in self.args))
                return frozenset(k for k in used if k < self.depth)
            case Reduce():
                return frozenset(k for k in self.arg.iterators if k < self.depth)
            case _:
                return frozenset()


@dataclass(frozen=True, eq=False)
class Read(Factor):
    """`source[index]`; outside the shape it is 0, or `outside` where that is infinite or NaN."""

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
    """A literal that is not rational: inf, -inf or nan."""

    value: str


@dataclass(frozen=True, eq=False)
class Apply(Factor):
    """A function of expressions; uninterpreted except for scalar_laws.py.

    `depth` iterators are free in the arguments; later ones belong to sums inside.
    """

    function: str
    args: tuple[Expr, ...]
    depth: int


@dataclass(frozen=True, eq=False)
class Reduce(Factor):
    """max, min or prod of `arg` over the iterators depth, depth + 1, ... of the given extents."""

    kind: str
    sums: Extents
    arg: Expr
    depth: int


@dataclass(frozen=True, eq=False)
class Term:
    """`coefficient * sum over sums of the product of factors`."""

    coefficient: Fraction
    sums: Extents
    factors: tuple[Factor, ...]

    @cached_property
    def body(self) -> str:
        """The term's name without its coefficient."""
        return f"{list(self.sums)}{'*'.join(f.token for f in self.factors)}"


@dataclass(frozen=True, eq=False)
class Expr:
    """A sum of terms, sorted, all different."""

    terms: tuple[Term, ...]

    @cached_property
    def token(self) -> str:
        return "+".join(f"{t.coefficient}{t.body}" for t in self.terms)

    @cached_property
    def iterators(self) -> frozenset[int]:
        """Every iterator that occurs, including those of inner sums."""
        return frozenset[int]().union(*(f.iterators for t in self.terms for f in t.factors))

    @cached_property
    def size(self) -> tuple[int, int]:
        """The number of factors, including those in arguments, and the depth of functions."""
        count = depth = 0
        for f in (f for t in self.terms for f in t.factors):
            inner = f.args if isinstance(f, Apply) else (f.arg,) if isinstance(f, Reduce) else ()
            count += 1 + sum(e.size[0] for e in inner)
            depth = max(depth, *(1 + e.size[1] for e in inner), 0)
        return count, depth

    @property
    def constant(self) -> Fraction | None:
        """Its constant value, if it has no factor."""
        if not self.terms:
            return Fraction(0)
        only = self.terms[0]
        return only.coefficient if len(self.terms) == 1 and not only.factors else None

    @property
    def symbolic(self) -> bool:
        """Whether an infinite or NaN literal occurs in it, outside functions."""
        return any(_is_symbolic(f) for t in self.terms for f in t.factors)


ZERO = Expr(())


def _is_symbolic(factor: Factor) -> bool:
    return isinstance(factor, Symbol) or (isinstance(factor, Read) and factor.outside != 0.0)


def render_index(index: Index, names: Sequence[str]) -> str:
    """The index with named iterators (`i3` beyond the names), independent of their order."""
    parts: list[str] = []
    for atom, c in index.terms:
        if isinstance(atom, int):
            name = names[atom] if atom < len(names) else f"i{atom}"
        else:
            name = f"({render_index(atom.numerator, names)}/{atom.divisor})"
        parts.append(f"{c}{name}")
    return "+".join([str(index.constant), *sorted(parts)])


def render_factor(factor: Factor, names: Sequence[str]) -> str:
    """The text that identifies a factor, with named iterators."""
    match factor:
        case Read(source, index, outside):
            at = ",".join(render_index(e, names) for e in index)
            return f"{source.token}[{at}]" + (f"|{outside}" if outside != 0.0 else "")
        case Guard(index, extent):
            return f"[{render_index(index, names)}<{extent}]"
        case Symbol(value):
            return f"'{value}'"
        case Apply(function, args, depth):
            inside = _names_inside(names, depth)
            texts = [render(a, inside) for a in args]
            texts = sorted(texts) if function in COMMUTATIVE else texts
            return f"f{digest(f'{function}({depth if not names else None};{texts})')}"
        case Reduce(kind, sums, arg, depth):
            inside = _names_inside(names, depth)
            depth = depth if not names else None
            return f"r{digest(f'{kind}{sums}{depth}{render(arg, inside)}')}"
        case _:
            raise TypeError(f"not a factor: {factor}")


def _names_inside(names: Sequence[str], depth: int) -> Sequence[str]:
    """Names inside a function: iterators of inner sums are named by nesting depth."""
    if not names:
        return names
    kept = names[:depth]
    nested = sum(name.startswith("b") for name in kept)
    return [*kept, *(f"b{nested + k}" for k in range(_MAX_NESTED))]


def render(expr: Expr, names: Sequence[str]) -> str:
    """The text that identifies an expression, with named iterators."""
    if not names:
        return expr.token
    parts: list[str] = []
    for t in expr.terms:
        body = "*".join(sorted(render_factor(f, names) for f in t.factors))
        parts.append(f"{t.coefficient}{list(t.sums)}{body}")
    return "+".join(sorted(parts))
