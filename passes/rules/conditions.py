"""Expressions over shapes and attributes: side conditions of rules, and sizes on right sides.

    expression  or-chain of and-chains of comparisons of sums
    comparison  == != < <= > >=, chainable
    sum         + - * // % and unary minus over atoms
    atom        number, name (an attribute), name[i], name.rank, name.shape, name.shape[i],
                min(..), max(..), a list [sum, ..], a function of lists, not expression,
                (expression)

A tensor variable is bound to its shape, an attribute variable to its value. A negative index
counts from the end. Sums, products, min and max of lists are taken element by element.
Functions of lists:

    put(list, i, n)     the list with n at position i
    take(list, order)   the elements at the positions that `order` lists
    find(list, n)       the position of n
    drop(list, i)       the list without position i
    first(list, n)      its first n elements
    rest(list, n)       what comes after its first n elements
    join(list, list)    one list after the other
    inverse(order)      the order that undoes another
    count(n)            0, 1, .., n - 1
    product(list)       of all elements

 The language has nothing else, so text from a rule file can only compute.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from ...dialects.errors import UndecidedExtent, UserError

Value: TypeAlias = "int | float | bool | str | tuple[Any, ...]"
Bindings: TypeAlias = Mapping[str, Value]
Code: TypeAlias = Callable[[Bindings], Any]

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(==|!=|<=|>=|//|[-+*%<>()\[\],.?]))")
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SUM: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub}
_PRODUCT: dict[str, Callable[[Any, Any], Any]] = {
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


def _put(given: tuple[Any, ...], position: int, value: Any) -> tuple[Any, ...]:
    position = range(len(given))[position]
    return (*given[:position], value, *given[position + 1 :])


def _drop(given: tuple[Any, ...], position: int) -> tuple[Any, ...]:
    position = range(len(given))[position]
    return (*given[:position], *given[position + 1 :])


def _find(given: tuple[Any, ...], value: Any) -> int:
    if value not in given:
        raise IndexError(f"{value} is not in {given}")
    return given.index(value)


_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "put": (3, _put),
    "drop": (2, _drop),
    "first": (2, lambda given, n: given[:n]),
    "rest": (2, lambda given, n: given[n:]),
    "join": (2, operator.add),
    "inverse": (1, lambda order: tuple(order.index(k) for k in range(len(order)))),
    "take": (2, lambda given, order: tuple(given[k] for k in order)),
    "find": (2, _find),
    "count": (1, lambda n: tuple(range(n))),
    "product": (1, math.prod),
}
"""Functions of lists, each with the number of its arguments."""


class Meaning:
    """The meaning of the operators, here on numbers. A prover substitutes its own terms."""

    def compare(self, sign: str, a: Any, b: Any) -> Any:
        return _COMPARE[sign](a, b)

    def calculate(self, sign: str, a: Any, b: Any) -> Any:
        if isinstance(a, tuple) or isinstance(b, tuple):
            left, right = _elements(a, b), _elements(b, a)
            return tuple(_SIGNS[sign](x, y) for x, y in zip(left, right, strict=True))
        return _SIGNS[sign](a, b)

    def apply(self, function: str, arguments: Sequence[Any]) -> Any:
        return _FUNCTIONS[function][1](*arguments)

    def every(self, parts: Iterable[Any]) -> Any:
        return all(parts)

    def some(self, parts: Iterable[Any]) -> Any:
        return any(parts)

    def no(self, part: Any) -> Any:
        return not part

    def extreme(self, word: str, parts: Sequence[Any]) -> Any:
        chosen = min if word == "min" else max
        lists = [part for part in parts if isinstance(part, tuple)]
        if not lists:
            return chosen(parts)
        columns = zip(*(_elements(part, lists[0]) for part in parts), strict=True)
        return tuple(chosen(column) for column in columns)

    def rank(self, variable: Any) -> Any:
        return len(variable)

    def shape(self, variable: Any) -> Any:
        return variable

    def item(self, variable: Any, index: Any) -> Any:
        return variable[index]


def _elements(value: Any, other: Any) -> tuple[Any, ...]:
    """A list as it is; a number as often as the list beside it is long."""
    return value if isinstance(value, tuple) else (value,) * len(other)


_SIGNS = _SUM | _PRODUCT
FUNCTIONS = tuple(_FUNCTIONS)
_WORDS = (*FUNCTIONS, "and", "or", "not", "min", "max", "true", "false")


def evaluate(text: str, bindings: Bindings) -> Any:
    """The value of an expression: a truth value or an integer.

    Raises:
        UserError: the text is not an expression, names an unbound variable, or divides by 0.
    """
    try:
        return compiled(text)(bindings)
    except (KeyError, IndexError) as error:
        raise UserError(f"'{text}' reads what is not there: {error}") from error
    except (ZeroDivisionError, TypeError, ValueError) as error:
        raise UserError(f"'{text}' cannot be computed: {error}") from error


def holds(where: tuple[str, ...], bindings: Bindings) -> bool:
    """Whether every condition holds.

    One that reads a missing dim does not, nor one of symbolic dims that their guards do not decide.
    """
    try:
        return all(compiled(text)(bindings) for text in where)
    except (KeyError, IndexError, ZeroDivisionError, TypeError, ValueError, UndecidedExtent):
        return False


def names_in(text: str) -> tuple[str, ...]:
    """Variables an expression reads, in order of appearance."""
    found = _NAME.findall(text)
    return tuple(dict.fromkeys(name for name in found if name not in _WORDS))


def renamed_text(text: str, names: Mapping[str, str]) -> str:
    """The expression with its variables renamed."""
    return _NAME.sub(lambda found: names.get(found[0], found[0]), text)


@cache
def compiled(text: str) -> Code:
    """Compile to a function of the bindings. Raises UserError if the text is not an expression."""
    return compiled_as(text, Meaning())


def compiled_as(text: str, meaning: Meaning) -> Code:
    """Compile to a function of the bindings, with the operators of `meaning`."""
    return _Parser(text, meaning).whole()


class _Parser:
    """Recursive descent. Each method returns the code of what it read."""

    def __init__(self, text: str, meaning: Meaning) -> None:
        self.text, self.meaning = text, meaning
        self.tokens = _tokens(text)
        self.at = 0

    def whole(self) -> Code:
        code = self.either()
        if self.at != len(self.tokens):
            raise self.fail()
        return code

    def fail(self) -> UserError:
        found = self.tokens[self.at] if self.at < len(self.tokens) else "the end"
        return UserError(f"'{self.text}' is not a condition or size", found=found)

    def accept(self, *wanted: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def expect(self, wanted: str) -> None:
        if self.accept(wanted) is None:
            raise self.fail()

    def either(self) -> Code:
        parts = [self.all_of()]
        while self.accept("or"):
            parts.append(self.all_of())
        some = self.meaning.some
        return parts[0] if len(parts) == 1 else lambda b: some(part(b) for part in parts)

    def all_of(self) -> Code:
        parts = [self.comparison()]
        while self.accept("and"):
            parts.append(self.comparison())
        every = self.meaning.every
        return parts[0] if len(parts) == 1 else lambda b: every(part(b) for part in parts)

    def comparison(self) -> Code:
        if self.accept("not"):
            negated, no = self.comparison(), self.meaning.no
            return lambda b: no(negated(b))
        values, signs = [self.chain(_SUM)], list[str]()
        while (sign := self.accept(*_COMPARE)) is not None:
            signs.append(sign)
            values.append(self.chain(_SUM))
        if not signs:
            return values[0]
        meaning = self.meaning

        def test(bindings: Bindings) -> Any:
            found = [value(bindings) for value in values]
            triples = zip(signs, found, found[1:], strict=False)
            tests = [meaning.compare(sign, a, b) for sign, a, b in triples]
            return tests[0] if len(tests) == 1 else meaning.every(tests)

        return test

    def chain(self, signs: Mapping[str, Callable[[Any, Any], Any]]) -> Code:
        below = self.unary if signs is _PRODUCT else lambda: self.chain(_PRODUCT)
        code = below()
        while (sign := self.accept(*signs)) is not None:
            code = self.binary(sign, code, below())
        return code

    def binary(self, sign: str, a: Code, b: Code) -> Code:
        calculate = self.meaning.calculate
        return lambda bindings: calculate(sign, a(bindings), b(bindings))

    def unary(self) -> Code:
        if self.accept("-"):
            return self.binary("-", lambda _: 0, self.unary())
        return self.atom()

    def atom(self) -> Code:
        if self.accept("("):
            code = self.either()
            self.expect(")")
            return code
        if self.accept("["):
            parts = self.listed("]")
            return lambda b: tuple(part(b) for part in parts)
        if self.at == len(self.tokens):
            raise self.fail()
        token = self.tokens[self.at]
        self.at += 1
        if token.isdigit():
            number = int(token)
            return lambda _: number
        if token in ("true", "false"):
            return lambda _: token == "true"
        if token in ("min", "max"):
            return self.least_or_most(token)
        if token in _FUNCTIONS:
            return self.function(token)
        if not token.isidentifier() or token in _WORDS:
            self.at -= 1
            raise self.fail()
        return self.variable(token)

    def arguments(self) -> list[Code]:
        self.expect("(")
        return self.listed(")")

    def listed(self, end: str) -> list[Code]:
        parts = [self.chain(_SUM)]
        while self.accept(","):
            parts.append(self.chain(_SUM))
        self.expect(end)
        return parts

    def least_or_most(self, word: str) -> Code:
        parts, extreme = self.arguments(), self.meaning.extreme
        return lambda b: extreme(word, [part(b) for part in parts])

    def function(self, name: str) -> Code:
        parts, apply = self.arguments(), self.meaning.apply
        if len(parts) != _FUNCTIONS[name][0]:
            raise UserError(
                f"'{self.text}': {name} has other arguments",
                expected=_FUNCTIONS[name][0],
                found=len(parts),
            )
        return lambda b: apply(name, [part(b) for part in parts])

    def variable(self, name: str) -> Code:
        rank, item = self.meaning.rank, self.meaning.item
        if self.accept("."):
            if self.accept("rank"):
                return lambda b: rank(b[name])
            self.expect("shape")
            if self.tokens[self.at : self.at + 1] != ["["]:
                shape = self.meaning.shape
                return lambda b: shape(b[name])
        elif self.tokens[self.at : self.at + 1] != ["["]:
            return lambda b: b[name]
        self.expect("[")
        index = self.chain(_SUM)
        self.expect("]")
        return lambda b: item(b[name], index(b))


def _tokens(text: str) -> list[str]:
    found, at = list[str](), 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UserError(f"'{text}' is not a condition or size", found=text[at:].strip()[:1])
        at = match.end()
        token = match.group(match.lastindex or 0)
        if token != "?":
            found.append(token)
    return found
