"""Extents and guards as text, `2 * seq + 1` and `seq <= 512`: written and read."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import sympy
from xdsl.context import Context
from xdsl.parser import AttrParser, Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.mlir_lexer import MLIRTokenKind

from .errors import UserError
from .extent_math import Expression, FloorDivision, ShapeGuard, make_guard, symbol

# One token of the text.
_NAME = re.compile(r"(?!(floordiv|mod)$)[A-Za-z_][A-Za-z0-9_]*")


def is_name(text: str) -> bool:
    """Whether a text is a symbol's name alone."""
    return _NAME.fullmatch(text) is not None


def extent_text(expr: Expression) -> str:
    """An extent as types show it: terms of higher degree first, the number last."""
    if isinstance(expr, FloorDivision):
        return _factor(expr)[1:-1]
    text = ""
    for k, term in enumerate(expr.as_ordered_terms()):
        factor, rest = term.as_coeff_Mul()
        sign = "-" if factor < 0 else "+"
        body = _term(abs(factor), rest)
        text += f" {sign} {body}" if k else (f"-{body}" if sign == "-" else body)
    return text


def _term(factor: Expression, rest: Expression) -> str:
    parts = [] if factor == 1 and rest != 1 else [str(factor)]
    if rest != 1:
        parts += [_factor(e) for e in rest.as_ordered_factors()]
    return " * ".join(parts)


def _factor(expr: Expression) -> str:
    if isinstance(expr, sympy.Symbol):
        return expr.name
    if isinstance(expr, FloorDivision):
        over, by = (extent_text(e) for e in expr.args)
        return f"({_grouped(over)} floordiv {_grouped(by)})"
    if isinstance(expr, sympy.Pow):
        return " * ".join([_factor(expr.base)] * int(expr.exp))
    return f"({extent_text(expr)})"


def _grouped(text: str) -> str:
    return f"({text})" if " " in text or text.startswith("-") else text


def guard_text(guard: ShapeGuard) -> str:
    """A guard with its symbols on the left where that says the same: `seq <= 512`."""
    terms = guard.expr.as_ordered_terms()
    plus = sum((t for t in terms if t.as_coeff_Mul()[0] > 0), sympy.Integer(0))
    minus = -sum((t for t in terms if t.as_coeff_Mul()[0] < 0), sympy.Integer(0))
    if plus.is_number and not minus.is_number:
        turned = {">=": "<="}.get(guard.relation, guard.relation)
        return f"{extent_text(minus)} {turned} {extent_text(plus)}"
    return f"{extent_text(plus)} {guard.relation} {extent_text(minus)}"


def parse_extent(parser: AttrParser) -> Expression:
    """Read an extent at the parser's position: names, numbers, `+ - * floordiv mod ( )`."""
    total = _parse_term(parser)
    while True:
        if parser.parse_optional_punctuation("+") is not None:
            total += _parse_term(parser)
        elif parser.parse_optional_punctuation("-") is not None:
            total -= _parse_term(parser)
        else:
            return sympy.expand(total)


def _parse_term(parser: AttrParser) -> Expression:
    left = _parse_primary(parser)
    while True:
        if parser.parse_optional_punctuation("*") is not None:
            left = left * _parse_primary(parser)
        elif parser.parse_optional_keyword("floordiv") is not None:
            left = FloorDivision(sympy.expand(left), _divisor(parser))
        elif parser.parse_optional_keyword("mod") is not None:
            by = _divisor(parser)
            left = left - FloorDivision(sympy.expand(left), by) * by
        else:
            return left


def _divisor(parser: AttrParser) -> Expression:
    position = parser.pos
    found = sympy.expand(_parse_primary(parser))
    if found.is_Integer and found <= 0:
        parser.raise_error("an extent is divided by a positive number", position)
    return found


def _parse_primary(parser: AttrParser) -> Expression:
    if parser.parse_optional_punctuation("-") is not None:
        return -_parse_primary(parser)
    if parser.parse_optional_punctuation("(") is not None:
        inner = parse_extent(parser)
        parser.parse_punctuation(")")
        return inner
    if (number := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return sympy.Integer(number)
    return symbol(parser.parse_identifier())


@lru_cache(maxsize=1 << 12)
def read_extent(text: str) -> Expression:
    """An extent from text. Raises UserError where it is none."""
    return _read(text, parse_extent, "an extent")


def read_guard(text: str) -> ShapeGuard:
    """A guard from text, `2 * n <= m`; `<`, `<=`, `==`, `!=`, `>=`, `>` compare.

    Raises:
        UserError: it is none.
    """
    sides = re.split(r"(<=|>=|==|!=|<|>)", text)
    if len(sides) != 3:
        raise UserError(f"'{text}' is no guard", hint='one is "seq <= 512"')
    left, right = (read_extent(side) for side in sides[::2])
    match sides[1]:
        case "==" | "!=":
            return make_guard(left - right, sides[1])
        case ">=":
            return make_guard(left - right, ">=")
        case "<=":
            return make_guard(right - left, ">=")
        case ">":
            return make_guard(left - right - 1, ">=")
        case _:
            return make_guard(right - left - 1, ">=")


def _read(text: str, parse: Callable[[AttrParser], Expression], what: str) -> Expression:
    parser = Parser(Context(), text)
    try:
        found = parse(parser)
        if parser._current_token.kind != MLIRTokenKind.EOF:  # pyright: ignore[reportPrivateUsage]
            parser.raise_error("it goes on")
    except (ParseError, RecursionError) as error:
        hint = "names, numbers, + - * floordiv mod and parentheses"
        raise UserError(f"'{text}' is not {what}", hint=hint) from error
    return found
