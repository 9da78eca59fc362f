"""Arithmetic of extents over sympy: symbols, floor division, bounds, values, guards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import sympy

# One of sympy; its own annotations say Basic or nothing.
Expression: TypeAlias = Any
Bounds: TypeAlias = "tuple[float, float]"
# No extent is larger: memory is not.
MOST = 1 << 48
Sizes: TypeAlias = "Mapping[str, int]"


def symbol(name: str) -> sympy.Symbol:
    """The symbol of this name: a whole number, not negative."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


class FloorDivision(sympy.Function):
    """floor(a / b) for whole a and b > 0, in one form: whole parts are taken out of it."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, over: Expression, by: Expression) -> Expression | None:  # pyright: ignore
        """The simpler form, or None where this is it."""
        if over == 0 or by == 1:
            return over
        if by == 0:
            return None
        if over.is_Integer and by.is_Integer:
            return sympy.Integer(int(over) // int(by))
        over, by = sympy.expand(over), sympy.expand(by)
        opposite = sympy.expand(by - 1 - over)
        if _leads_negative(over) and not _leads_negative(opposite):  # rounded up, of -over
            return -cls(opposite, by)
        if (nested := _nested(over, by)) is not None:
            return nested
        quotient, rest = sympy.Integer(0), sympy.Integer(0)
        for term in sympy.Add.make_args(over):
            ratio = sympy.cancel(term / by)
            if term.is_Integer and by.is_Integer:  # what is left of it is in [0, by)
                quotient += int(term) // int(by)
                rest += int(term) % int(by)
            elif _is_whole(ratio):
                quotient += ratio
            else:
                rest += term
        if quotient != 0:
            return quotient + cls(rest, by)
        return _reduced(over, by)


def _leads_negative(expr: Expression) -> bool:
    """Whether the first of the terms that are no number has a negative coefficient."""
    pairs = [term.as_coeff_Mul() for term in sympy.Add.make_args(expr) if not term.is_Integer]
    pairs.sort(key=lambda pair: sympy.default_sort_key(pair[1]))
    return bool(pairs and pairs[0][0] < 0)


def _reduced(over: Expression, by: Expression) -> Expression | None:
    """The division without what both sides are multiples of: a number times symbols.

    That is positive, as the divisor is; of a sum nothing says so.
    """
    fraction: Expression = sympy.together(sympy.cancel(over / by))
    less, small = (sympy.expand(e) for e in fraction.as_numer_denom())
    common = sympy.cancel(by / small)
    number, rest = common.as_coeff_Mul()
    if not all(isinstance(f, sympy.Symbol) for f in sympy.Mul.make_args(rest) if f != 1):
        return None
    sign = -1 if number < 0 else 1
    if abs(number) == 1 and rest == 1:
        return None
    return FloorDivision(sympy.expand(sign * less), sympy.expand(sign * small))


def _nested(over: Expression, by: Expression) -> Expression | None:
    """floor((floor(a / b) + r) / c) as floor((a + r * b) / (b * c)), for whole r."""
    terms = sympy.Add.make_args(sympy.expand(over))
    inner = [t for t in terms if isinstance(t, FloorDivision)]
    if len(inner) != 1:
        return None
    first, second = inner[0].args
    rest = sympy.expand(over - inner[0])
    return FloorDivision(sympy.expand(first + rest * second), sympy.expand(second * by))


def _is_whole(expr: Expression) -> bool:
    """Whether a polynomial over whole numbers: nothing is divided in it."""
    _, denominator = sympy.fraction(sympy.together(expr))
    return denominator == 1


def _content(expr: Expression) -> sympy.Integer:
    """The greatest whole number that divides every coefficient."""
    found = 0
    for term in sympy.Add.make_args(expr):
        found = math.gcd(found, abs(int(term.as_coeff_Mul()[0])))
    return sympy.Integer(found)


def primitive(expr: Expression, signed: bool) -> Expression:
    """`expr` over a positive number, which does not change its sign or whether it is 0.

    Args:
        signed: keep the sign; else the first coefficient is positive.
    """
    terms = sympy.Add.make_args(expr)
    constant = sum((t for t in terms if t.is_Integer), sympy.Integer(0))
    moving = sympy.expand(expr - constant)
    common = _content(moving)
    if common > 1:
        if signed:  # c * e + k >= 0 is e + floor(k / c) >= 0
            expr = sympy.expand(moving / common) + int(constant) // int(common)
        elif int(constant) % int(common) == 0:
            expr = sympy.expand(expr / common)
    if not signed and moving != 0 and _leads_negative(expr):
        expr = sympy.expand(-expr)
    return expr


def value_at(expr: Expression, sizes: Mapping[str, int]) -> int:
    """The number that an expression is. Raises KeyError for a symbol without one."""
    return _evaluator(expr)(sizes)


# A session asks for hundreds of them at each size it meets, and sympy takes milliseconds for one.
@lru_cache(maxsize=1 << 14)
def _evaluator(expr: Expression) -> Callable[[Sizes], int]:
    """What computes an expression."""
    parts = [_evaluator(e) for e in expr.args]
    match expr:
        case sympy.Integer():
            number = int(expr)
            return lambda sizes: number
        case sympy.Symbol():
            name = expr.name
            return lambda sizes: sizes[name]
        case sympy.Add():
            return lambda sizes: sum([part(sizes) for part in parts])
        case sympy.Mul():
            return lambda sizes: math.prod([part(sizes) for part in parts])
        case FloorDivision():
            over, by = parts
            return lambda sizes: over(sizes) // by(sizes)
        case _:
            return lambda sizes: int(expr.subs({s: sizes[s.name] for s in expr.free_symbols}))


def bounds_of(expr: Expression, known: Mapping[Expression, Bounds]) -> Bounds:
    """A range that holds every value, by interval arithmetic; symbols are at least 0.

    Args:
        known: bounds of symbols and of floors.
    """
    match expr:
        case sympy.Integer():
            return int(expr), int(expr)
        case sympy.Symbol():
            return known.get(expr, (0, MOST))
        case sympy.Add():
            parts = [bounds_of(e, known) for e in expr.args]
            return sum(low for low, _ in parts), sum(high for _, high in parts)
        case sympy.Mul():
            found: Bounds = (1, 1)
            for e in expr.args:
                found = _product(found, bounds_of(e, known))
            return found
        case sympy.Pow() if expr.exp.is_Integer and expr.exp > 0:
            low, high = bounds_of(expr.base, known)
            power = int(expr.exp)
            return (low**power, high**power) if low >= 0 else (-math.inf, math.inf)
        case FloorDivision():
            low, high = _quotient(*(bounds_of(e, known) for e in expr.args))
            least, most = known.get(expr, (-math.inf, math.inf))
            return max(low, least), min(high, most)
        case _:
            return -math.inf, math.inf


def _product(a: Bounds, b: Bounds) -> Bounds:
    ends = [0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(ends), max(ends)


def _quotient(over: Bounds, by: Bounds) -> Bounds:
    """Of a divisor of at least 1."""
    least = max(by[0], 1)

    def ratio(x: float, y: float) -> Any:
        return x if math.isinf(x) else (0 if x >= 0 else -1) if math.isinf(y) else x // y

    ends = [ratio(x, y) for x in over for y in (least, max(by[1], least))]
    return min(ends), max(ends)


@dataclass(frozen=True)
class ShapeGuard:
    """What holds of extents: `expr == 0`, `expr != 0` or `expr >= 0`; `expr` is primitive."""

    expr: Expression
    relation: str

    def negated(self) -> ShapeGuard:
        """The opposite. Of e >= 0 that is -e - 1 >= 0: extents are whole."""
        match self.relation:
            case "==":
                return ShapeGuard(self.expr, "!=")
            case "!=":
                return ShapeGuard(self.expr, "==")
            case _:
                return make_guard(-self.expr - 1, ">=")

    def holds(self, sizes: Sizes) -> bool:
        """Whether it is so for these numbers of all its symbols."""
        value = value_at(self.expr, sizes)
        return _compared(value, self.relation)

    @property
    def symbols(self) -> list[str]:
        """The names in it, sorted."""
        return sorted(s.name for s in self.expr.free_symbols)


def _compared(value: int, relation: str) -> bool:
    match relation:
        case "==":
            return value == 0
        case "!=":
            return value != 0
        case _:
            return value >= 0


def make_guard(expr: Expression, relation: str) -> ShapeGuard:
    """The guard `expr relation 0`, in its one form."""
    return ShapeGuard(primitive(sympy.expand(expr), signed=relation == ">="), relation)


def solved(expr: Expression, number: int, sizes: dict[str, int]) -> bool:
    """Whether `expr` can be `number`; what that says of one new symbol is added to `sizes`."""
    if isinstance(expr, int):
        return expr == number
    if isinstance(expr, sympy.Symbol):
        return sizes.setdefault(expr.name, number) == number >= 0
    if all(s.name in sizes for s in expr.free_symbols):
        return value_at(expr, sizes) == number
    expr = expr.subs({symbol(name): n for name, n in sizes.items()})
    unknown: list[Any] = list(expr.free_symbols)
    if not unknown:  # what is left does not matter: 0 times a symbol
        return value_at(expr, sizes) == number
    if len(unknown) > 1:
        return True
    found = [n for n in sympy.solve(expr - number, unknown[0]) if n.is_Integer and n >= 0]
    if len(found) == 1:
        sizes[unknown[0].name] = int(found[0])
    return len(found) == 1
