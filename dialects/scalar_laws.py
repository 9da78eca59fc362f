"""Identities of scalar functions, called laws, that hold exactly, for every operand.

Beyond these laws the equivalence check knows nothing about nonlinear functions: it takes them as
arbitrary functions that obey the laws. Each law is true of the reference meaning in real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

Argument: TypeAlias = "tuple[str, Fraction | None]"

# f(point) = value.
POINTS: dict[str, dict[int, int]] = {
    "abs": {0: 0},
    "sqrt": {0: 0, 1: 1},
    "exp": {0: 1},
    "expm1": {0: 0},
    "log": {1: 0},
    "log1p": {0: 0},
    "tanh": {0: 0},
    "erf": {0: 0},
    "floor": {0: 0},
    "ceil": {0: 0},
    "roundeven": {0: 0},
    "trunc": {0: 0},
    "sin": {0: 0},
    "cos": {0: 1},
    "tan": {0: 0},
    "asin": {0: 0},
    "acos": {1: 0},
    "atan": {0: 0},
    "sinh": {0: 0},
    "cosh": {0: 1},
    "asinh": {0: 0},
    "acosh": {1: 0},
    "atanh": {0: 0},
    "recip": {1: 1},
}
# f(g(x)) = g(x) for f the key and g in its set: g(x) already has the property that f gives.
_INTEGER_VALUED = frozenset({"floor", "ceil", "roundeven", "trunc"})
NOTHING_AFTER: dict[str, frozenset[str]] = {
    "abs": frozenset({"abs", "sqrt", "exp"}),
    **dict.fromkeys(sorted(_INTEGER_VALUED), _INTEGER_VALUED),
}
# f(a, b) = f(b, a).
COMMUTATIVE = frozenset({"max", "min", "eq", "ne"})
# Functions of a set: f(a, a, b) = f(a, b), f(a) = a.
OF_A_SET = frozenset({"max", "min"})
# Uninterpreted reductions whose value depends on how often an operand occurs; max and min depend on
# the set alone. "raw" is a sum that is not expanded: ring laws do not hold for infinite literals.
OF_A_MULTISET = frozenset({"prod", "raw"})

_EXACT: dict[str, Callable[[Fraction], Fraction]] = {
    "abs": abs,
    "floor": lambda x: Fraction(math.floor(x)),
    "ceil": lambda x: Fraction(math.ceil(x)),
    "roundeven": lambda x: Fraction(round(x)),
    "trunc": lambda x: Fraction(math.trunc(x)),
}
# On integers: division towards zero and its remainder.
_INTEGER_DIVISION: dict[str, Callable[[Fraction, Fraction], Fraction | int]] = {
    "idiv": lambda a, b: math.trunc(a / b),
    "irem": lambda a, b: a - b * math.trunc(a / b),
}
_MAX_POWER = 64
_COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def value_at(function: str, arguments: Sequence[Fraction]) -> Fraction | None:
    """The value at rational arguments, if it is known to be rational."""
    if len(arguments) == 1:
        return _unary(function, arguments[0])
    if function in _COMPARE:
        return Fraction(int(_COMPARE[function](arguments[0], arguments[1])))
    if function == "max":
        return max(arguments)
    if function == "min":
        return min(arguments)
    if function == "ipow":  # an integer power
        return arguments[0] ** int(arguments[1]) if 0 <= arguments[1] <= _MAX_POWER else None
    if function in _INTEGER_DIVISION and arguments[1] != 0:
        return Fraction(_INTEGER_DIVISION[function](*arguments))
    return None


def _unary(function: str, x: Fraction) -> Fraction | None:
    if function in _EXACT:
        return _EXACT[function](x)
    if function == "recip":
        return 1 / x if x != 0 else None
    if function == "sqrt" and x >= 0:
        top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
        exact = top * top == x.numerator and bottom * bottom == x.denominator
        return Fraction(top, bottom) if exact else None
    points = POINTS.get(function, {})
    return Fraction(points[int(x)]) if x.denominator == 1 and int(x) in points else None


def simplify_call(function: str, arguments: Sequence[Argument]) -> Fraction | list[int | Fraction]:
    """The constant value of a call, or its remaining operands, by number or as constants.

    Args:
        arguments: a name for each operand (equal names, equal operands) and its value if constant.
    """
    constants = [c for _, c in arguments if c is not None]
    if len(constants) == len(arguments):
        value = value_at(function, constants)
        if value is not None:
            return value
    if function == "lt" and arguments[0][0] == arguments[1][0]:
        return Fraction(0)  # also for NaN: a <= a is not always true
    numbers = list(range(len(arguments)))
    if function in OF_A_SET:
        return _of_a_set(function, arguments, constants)
    if function in COMMUTATIVE:
        numbers.sort(key=lambda k: arguments[k][0])
    return list(numbers)


def _of_a_set(
    function: str, arguments: Sequence[Argument], constants: Sequence[Fraction]
) -> list[int | Fraction]:
    first: dict[str, int] = {}
    for k, (name, value) in enumerate(arguments):
        if value is None:
            first.setdefault(name, k)
    kept: list[int | Fraction] = list(first.values())
    if constants:
        kept.append(max(constants) if function == "max" else min(constants))
    return kept
