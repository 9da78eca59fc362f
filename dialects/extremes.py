"""Normal forms of max and min in expressions, by what holds for all real numbers."""

from __future__ import annotations

from collections.abc import Sequence

from .canonical_types import Apply, Expr, Factor


def single_factor(expr: Expr) -> Factor | None:
    """The single factor of an expression, if it has just one."""
    if len(expr.terms) != 1:
        return None
    term = expr.terms[0]
    alone = term.coefficient == 1 and not term.sums and len(term.factors) == 1
    return term.factors[0] if alone else None


def flat(function: str, args: Sequence[Expr]) -> list[Expr]:
    """Flatten nested max (min), count each operand once, one number at most, ignore the order."""
    found: dict[str, Expr] = {}
    for arg in args:
        inner = single_factor(arg)
        nested = isinstance(inner, Apply) and inner.function == function
        for part in inner.args if nested and isinstance(inner, Apply) else (arg,):
            found[part.token] = part
    numbers = {value: token for token, e in found.items() if (value := e.constant) is not None}
    if numbers:
        end = max(numbers) if function == "max" else min(numbers)
        found = {t: e for t, e in found.items() if e.constant is None or t == numbers[end]}
    return [found[token] for token in sorted(found)]


def between(args: Sequence[Expr]) -> tuple[Expr, Expr, list[Expr]] | None:
    """For a flat max of two: low, high and x, where it is max(low, min(high, x)) and low < high.

    That is min(high, max(low, x)), also where x is NaN. With low >= high it is low, but for NaN.
    """
    for low, other in (args, args[::-1]) if len(args) == 2 else ():
        inner = single_factor(other)
        if low.constant is None or not isinstance(inner, Apply) or inner.function != "min":
            continue
        for high in inner.args:
            if high.constant is not None and low.constant < high.constant:
                return low, high, [a for a in inner.args if a is not high]
    return None


__all__ = ["between", "flat", "single_factor"]
