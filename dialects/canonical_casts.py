"""Conversions in canonical expressions: which change no number, and which are functions.

A conversion to a float type that cannot hold every source value rounds: it is the function
`cast.f32` (or its like). Two kinds of conversion vanish: those that change no number, and those
that round a value computed from numbers of their own type alone. Arithmetic inside a type counts as
exact; half floats are computed in float32 and rounded once.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.ir import Attribute

from .canonical_scope import apply, factor, single_factor
from .canonical_types import Apply, Expr, Extents, Factor, Guard, Read, Reduce, Scope, Source, scope
from .types import holds, holds_range, is_float, is_half
from .wrapping import CAST, bounds, stays_inside


def converted(value: Expr, source: Attribute, target: Attribute, extents: Extents) -> Expr:
    """A value converted to another type; integers are wrapped, and the target is not boolean."""
    if _is_exact(value, source, target, extents):
        return value
    if is_half(target) and _is_made_of(value, target):
        return _retyped(value, target, extents)
    return apply(f"{CAST}{target}", [value], extents)


def _is_exact(value: Expr, source: Attribute, target: Attribute, extents: Extents) -> bool:
    """Whether a conversion changes no number, by the types or by bounds of the value.

    A value converted exactly from the target's type, or a narrower one, converts back exactly.
    """
    if holds(target, source):
        return True
    known = bounds(value, extents)
    if known is not None:
        fits = is_float(target) and holds_range(target, *known)
        return fits or (not is_float(target) and stays_inside(value, target, extents))
    inner = single_factor(value)
    return isinstance(inner, Read) and inner.outside == 0.0 and holds(target, inner.source.element)


def _retyped(value: Expr, element: Attribute, extents: Extents) -> Expr:
    """The same value, computed in this element type if a scope computes it."""
    inner = single_factor(value)
    if not isinstance(inner, Read) or not isinstance(inner.source, Scope):
        return value
    made = scope(inner.source.shape, element, inner.source.expr)
    return factor(Read(made, inner.index, inner.outside), extents)


def _is_made_of(expr: Expr, element: Attribute) -> bool:
    """Whether an expression is computed from numbers of this type alone."""
    return all(_comes_from(f, element) for t in expr.terms for f in t.factors)


def _comes_from(f: Factor, element: Attribute) -> bool:
    match f:
        case Guard():
            return True
        case Read(source, _, _):
            inner = isinstance(source, Scope) and is_float(source.element)
            return holds(element, source.element) or (inner and _scope_is_made_of(source, element))
        case Apply(function, args, _):
            return function == f"{CAST}{element}" or all(_is_made_of(a, element) for a in args)
        case Reduce(_, _, arg, _):
            return _is_made_of(arg, element)
        case _:
            return False


@lru_cache(maxsize=1 << 12)
def _scope_is_made_of(source: Source, element: Attribute) -> bool:
    return isinstance(source, Scope) and _is_made_of(source.expr, element)
