"""Whether an equality needs terms to cancel: a + b - a = b holds for numbers, not for floats.

`(x + c) - c` is x in exact arithmetic. In floats it rounds x to multiples of an ulp of c, and
programs do so on purpose. The verdict names this identity. The test makes every coefficient of both
expressions positive, so that nothing cancels. If they are still equal the proof needs no
cancelling; otherwise it may. Four things are exempt: sums over iterators (a contraction may be
reassociated, and Winograd's products cancel in it), values selected by a condition, integers, and
booleans.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.canonical_scope import (
    Apply,
    Expr,
    Extents,
    Factor,
    Guard,
    Read,
    Reduce,
    Scope,
    Source,
    Term,
    add,
    apply,
    bind,
    constant,
    factor,
    multiply,
    reduce,
    scope,
)
from ...dialects.types import is_bool, is_float
from .evaluator import dependency_order

# A sum over iterators, of products or not, is exempt; certificates compare this text.
NAME = "cancelling"
STATEMENT = (
    "a + b - a = b outside of sums of products: what cancels leaves its rounding in floats "
    "(the programs were run in their own precision, and agree)"
)
_COMPARISONS = frozenset({"lt", "le", "eq", "ne"})

Proves = Callable[[Source, Source, frozenset[str]], bool]


def needs_cancelling(a: Source, b: Source, cut: frozenset[str], proves: Proves) -> bool:
    """Whether a proved equality of two sources no longer holds if nothing may cancel.

    Args:
        cut: tokens of the sources that a proof does not look into: it takes them as arbitrary.
        proves: whether two sources are equal for all values of the sources in a cut.
    """
    cut = cut - {a.token, b.token}  # both are opened, even where one reads the other
    if not any(_subtracts(source, cut) for source in (a, b)):
        return False
    first, second = (_WithoutSigns(cut).source(source) for source in (a, b))
    return first is not second and not proves(first, second, cut)


def _subtracts(source: Source, cut: frozenset[str]) -> bool:
    nodes = dependency_order(source, cut - {source.token})
    return any(isinstance(n, Scope) and _has_minus(n.expr) for n in nodes if is_float(n.element))


def _has_minus(expr: Expr) -> bool:
    for term in expr.terms:
        if term.coefficient < 0 and not _is_exempt(term):
            return True
        for f in term.factors:
            inner = f.args if isinstance(f, Apply) else (f.arg,) if isinstance(f, Reduce) else ()
            if any(_has_minus(e) for e in inner):
                return True
    return False


def _is_exempt(term: Term) -> bool:
    return bool(term.sums) or any(_is_condition(f) for f in term.factors)


def _is_condition(f: Factor) -> bool:
    if isinstance(f, Read):
        return is_bool(f.source.element)
    return isinstance(f, Guard) or (isinstance(f, Apply) and f.function in _COMPARISONS)


def _unchanged(f: Read) -> Read:
    return f


def without_signs(expr: Expr, extents: Extents, read: Callable[[Read], Read] = _unchanged) -> Expr:
    """The expression with positive coefficients, except exempt ones; `read` maps its reads."""
    total: list[Expr] = []
    for term in expr.terms:
        inner_extents = extents + term.sums
        value = constant(term.coefficient if _is_exempt(term) else abs(term.coefficient))
        for f in term.factors:
            value = multiply(value, _factor(f, inner_extents, read), inner_extents)
        # `bind` sums over the last iterators.
        total.append(bind(value, extents, term.sums) if term.sums else value)
    return add(*total)


def _factor(f: Factor, extents: Extents, read: Callable[[Read], Read]) -> Expr:
    match f:
        case Read():
            return factor(read(f), extents)
        case Apply(function, args, depth):
            # Only the first `depth` iterators are visible inside.
            inner = [without_signs(e, extents[:depth], read) for e in args]
            return apply(function, inner, extents)
        case Reduce(kind, sums, arg, depth):
            inner = without_signs(arg, extents[:depth] + sums, read)
            return reduce(kind, sums, inner, extents[:depth])
        case _:
            return factor(f, extents)


class _WithoutSigns:
    """Scopes above a cut with positive coefficients, memoised."""

    def __init__(self, cut: frozenset[str]):
        self.cut = cut
        self.made: dict[str, Source] = {}

    def source(self, source: Source) -> Source:
        for node in dependency_order(source, self.cut - {source.token}):
            opened = node.token not in self.cut or node is source
            if isinstance(node, Scope) and opened and is_float(node.element):
                expr = without_signs(node.expr, node.shape, self._read)
                self.made[node.token] = scope(node.shape, node.element, expr)
            else:
                self.made[node.token] = node
        return self.made[source.token]

    def _read(self, f: Read) -> Read:
        return Read(self.made.get(f.source.token, f.source), f.index, f.outside)


__all__ = ["NAME", "STATEMENT", "needs_cancelling", "without_signs"]
