"""Integers of n bits in canonical expressions: values modulo 2^n.

An expression of an integer type is a polynomial; its meaning is its class modulo 2^n. Sums,
differences and products of classes are classes, so nothing is wrapped between them. Where the
value itself matters (a comparison, a division, a maximum, a conversion to a wider type or to a
float) the expression becomes the argument of `wrap.i8` (or its like). That function maps an integer
to the value of the type in its class. `wrapped` omits it where bounds show that the polynomial
never leaves the type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute

from .canonical_types import Apply, Expr, Extents, Factor, Guard, Leaf, Read, Reduce, Scope, Term
from .types import integer_range, is_bool

WRAP, CAST = "wrap.", "cast."
_TRUTHS = frozenset({"lt", "le", "eq", "ne"})

Bounds: TypeAlias = "tuple[int, int]"
# Products of expressions over some extents, as canonical_scope.multiply makes them.
Multiply: TypeAlias = Callable[[Expr, Expr, Extents], Expr]


def is_whole(element: Attribute) -> bool:
    """Whether numbers of this type wrap: an integer that is not boolean."""
    return isinstance(element, IntegerType) and not is_bool(element)


@lru_cache(maxsize=64)
def type_named(name: str) -> IntegerType | None:
    """The integer type that `i8`, `ui8`, ... name; None for others."""
    unsigned = name.startswith("u")
    digits = name.removeprefix("u").removeprefix("i")
    if not digits.isdigit():
        return None
    return IntegerType(int(digits), Signedness.UNSIGNED if unsigned else Signedness.SIGNLESS)


def bits_of(element: Attribute) -> int:
    """Width of an integer type."""
    assert isinstance(element, IntegerType)
    return element.width.data


def in_type(value: Fraction, element: Attribute) -> Fraction:
    """The value of the type congruent to an integer."""
    low, high = integer_range(element)
    return Fraction((int(value) - low) % (high - low + 1) + low)


# --- bounds ---------------------------------------------------------------------------------------


def stays_inside(expr: Expr, element: Attribute, extents: Extents) -> bool:
    """Whether a polynomial's values are known to be values of the type."""
    found = bounds(expr, extents)
    low, high = integer_range(element)
    return found is not None and found[0] >= low and found[1] <= high


def bounds(expr: Expr, extents: Extents) -> Bounds | None:
    """Integer bounds of an expression's values; None if unknown."""
    low = high = 0
    for term in expr.terms:
        if term.coefficient.denominator != 1:
            return None
        part = _product([_factor(f, extents + term.sums) for f in term.factors])
        if part is None:
            return None
        by = int(term.coefficient) * math.prod(term.sums)
        ends = (part[0] * by, part[1] * by)
        low, high = low + min(ends), high + max(ends)
    return low, high


def _product(parts: Sequence[Bounds | None]) -> Bounds | None:
    low = high = 1
    for part in parts:
        if part is None:
            return None
        ends = [x * y for x in (low, high) for y in part]
        low, high = min(ends), max(ends)
    return low, high


def _factor(f: Factor, extents: Extents) -> Bounds | None:
    match f:
        case Guard():
            return 0, 1
        case Read(source, _, outside) if outside == 0.0:
            return _source(source)
        case Apply(function, _, _) if function in _TRUTHS:
            return 0, 1
        case Apply(function, args, depth) if function in ("max", "min"):
            return _chosen(function, [bounds(a, extents[:depth]) for a in args])
        case Apply(function, args, depth) if function == "mul":
            return _product([bounds(a, extents[:depth]) for a in args])
        case Apply(function, _, _) if function.startswith((WRAP, CAST)):
            element = type_named(function.removeprefix(WRAP).removeprefix(CAST))
            return None if element is None else integer_range(element)
        case Reduce("or", _, _, _):
            return 0, 1
        case Reduce("max" | "min", sums, arg, depth):
            return bounds(arg, extents[:depth] + sums)
        case _:
            return None


def _chosen(function: str, parts: Sequence[Bounds | None]) -> Bounds | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    choose = max if function == "max" else min
    return choose(low for low, _ in known), choose(high for _, high in known)


def _source(source: object) -> Bounds | None:
    """Bounds of a tensor's elements, including 0: a read outside gives 0.

    A scope is replaced by its polynomial, so its type alone gives no bounds.
    """
    if isinstance(source, Leaf) and source.data is not None:
        whole = all(v.denominator == 1 for v in source.data)
        return (min(0, *map(int, source.data)), max(0, *map(int, source.data))) if whole else None
    if isinstance(source, Leaf):
        return integer_range(source.element) if isinstance(source.element, IntegerType) else None
    return _scope(source) if isinstance(source, Scope) else None


@lru_cache(maxsize=1 << 12)
def _scope(source: Scope) -> Bounds | None:
    if not isinstance(source.element, IntegerType):
        return None
    if is_bool(source.element):
        return 0, 1
    if not stays_inside(source.expr, source.element, source.shape):
        return None
    found = bounds(source.expr, source.shape)
    assert found is not None
    return min(0, found[0]), max(0, found[1])


# --- normal forms ---------------------------------------------------------------------------------


def reduced(expr: Expr, bits: int) -> Expr:
    """The polynomial in the same class modulo 2^bits with coefficients from -2^(bits - 1) on."""
    if any(t.coefficient.denominator != 1 for t in expr.terms):
        return expr
    half = 1 << bits - 1
    found: list[Term] = []
    for t in expr.terms:
        c = Fraction((int(t.coefficient) + half) % (2 * half) - half)
        if c != 0:
            found.append(t if c == t.coefficient else Term(c, t.sums, t.factors))
    return Expr(tuple(found))


def unwrapped(factor: Factor, bits: int) -> Expr | None:
    """x, if the factor is a wrapping of x that is invisible modulo 2^bits."""
    if not isinstance(factor, Apply) or not factor.function.startswith(WRAP):
        return None
    element = type_named(factor.function.removeprefix(WRAP))
    return factor.args[0] if element is not None and bits_of(element) >= bits else None
