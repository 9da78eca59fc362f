"""Represent type conversions in canonical expressions.

A conversion that may round is a call of a function named after its target, such as `cast.f32`. Two
kinds of conversion are dropped: those that change no value, and those to a half float of a value
computed from numbers of that type alone. Arithmetic inside one type counts as exact; half floats
are computed in float32 and rounded once.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.ir import Attribute

from .canonical_scope import apply, factor, single_factor
from .canonical_types import Apply, Expr, Extents, Factor, Guard, Read, Reduce, Scope, Source, scope
from .types import holds, holds_range, is_float, is_half
from .wrapping import CAST, bounds, stays_inside


def converted(value: Expr, source: Attribute, target: Attribute, extents: Extents) -> Expr:
    """Return a value converted to another type.

    Integers must be wrapped already, and the target must not be boolean.
    """
    if _is_exact(value, source, target, extents):
        return value
    if is_half(target) and _is_computed_from(value, target):
        return _retyped(value, target, extents)
    return apply(f"{CAST}{target}", [value], extents)


def _is_exact(value: Expr, source: Attribute, target: Attribute, extents: Extents) -> bool:
    """Whether a conversion changes no value, by the types or by bounds of the value.

    A value converted exactly from the target's type, or a narrower one, converts back exactly.
    """
    if holds(target, source):
        return True
    value_bounds = bounds(value, extents)
    if value_bounds is not None:
        fits = is_float(target) and holds_range(target, *value_bounds)
        return fits or (not is_float(target) and stays_inside(value, target, extents))
    inner = single_factor(value)
    return isinstance(inner, Read) and inner.outside == 0.0 and holds(target, inner.source.element)


def _retyped(value: Expr, element: Attribute, extents: Extents) -> Expr:
    """Return the same value, computed in this element type if a scope computes it."""
    inner = single_factor(value)
    if not isinstance(inner, Read) or not isinstance(inner.source, Scope):
        return value
    retyped = scope(inner.source.shape, element, inner.source.expr)
    return factor(Read(retyped, inner.index, inner.outside), extents)


def _is_computed_from(expr: Expr, element: Attribute) -> bool:
    """Whether an expression is computed from numbers of this type alone."""
    return all(_factor_is_computed_from(f, element) for t in expr.terms for f in t.factors)


def _factor_is_computed_from(f: Factor, element: Attribute) -> bool:
    match f:
        case Guard():
            return True
        case Read(source, _, _):
            inner = isinstance(source, Scope) and is_float(source.element)
            return holds(element, source.element) or (
                inner and _scope_is_computed_from(source, element)
            )
        case Apply(function, args, _):
            return function == f"{CAST}{element}" or all(
                _is_computed_from(a, element) for a in args
            )
        case Reduce(_, _, arg, _):
            return _is_computed_from(arg, element)
        case _:
            return False


@lru_cache(maxsize=1 << 12)
def _scope_is_computed_from(source: Source, element: Attribute) -> bool:
    return isinstance(source, Scope) and _is_computed_from(source.expr, element)
