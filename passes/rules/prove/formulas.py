"""Rules and properties as formulas of z3.

Tensors are one uninterpreted sort with a value for "makes no sense"; every op is an uninterpreted
function of operands and attributes, `sense` says which tensors make sense, `dim` and `rank` are
their shapes. Lists among attributes are a sort of their own with `at`. Integers are z3's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import z3

from ..conditions import Meaning, compiled_as
from ..rule import AttrVar, Rule, Size, variables_of
from ..terms import attribute_names
from .encoder import NotEncodedError, TermEncoder, attributes_of

TENSOR, LIST = z3.DeclareSort("Tensor"), z3.DeclareSort("List")
INT, BOOL = z3.IntSort(), z3.BoolSort()
sense = z3.Function("sense", TENSOR, BOOL)
dim = z3.Function("dim", TENSOR, INT, INT)
rank = z3.Function("rank", TENSOR, INT)
at = z3.Function("at", LIST, INT, INT)
length = z3.Function("length", LIST, INT)

_INTS = ("axis", "groups", "size", "channels")
_BOOLS = ("transpose_a", "transpose_b", "ceil_mode", "count_include_pad", "keep_dims")


def sort_of(attribute: str) -> Any:
    """The sort of an attribute."""
    if attribute in _INTS or attribute.startswith("size_"):
        return INT
    return BOOL if attribute in _BOOLS else z3.RealSort() if attribute == "fill" else LIST


@cache
def function_of(key: str, arity: int) -> Any:
    """The uninterpreted function of an op; `key` as `name_of` says."""
    op = key.split(".")[0].split("/")[0]
    sorts = [sort_of(name) for name in attributes_of(op)]
    if op == "split":
        sorts = [INT, INT, INT]
    return z3.Function(key, *[TENSOR] * arity, *sorts, TENSOR)


@cache
def _tuple(count: int) -> Any:
    return z3.Function(f"list{count}", *[INT] * count, LIST)


def list_axioms() -> list[Any]:
    """Elements of explicit lists."""
    axioms = list[Any]()
    for count in (1, 2, 4, 8):
        numbers = z3.Ints(" ".join(f"n{k}" for k in range(count)))
        made = _tuple(count)(*numbers)
        known = [at(made, k) == n for k, n in enumerate(numbers)]
        body = z3.And([*known, length(made) == count])
        axioms.append(z3.ForAll(numbers, body, patterns=[made]))
    return axioms


class Solver(Meaning):
    """Conditions as z3 terms of tensors and attributes; the sizes of a split are two integers."""

    def compare(self, sign: str, a: Any, b: Any) -> Any:
        if isinstance(a, tuple) and isinstance(b, tuple):
            pairs: Any = zip(a, b, strict=True)
            same = z3.And([x == y for x, y in pairs])
            return same if sign == "==" else z3.Not(same)
        return super().compare(sign, a, b)

    def calculate(self, sign: str, a: Any, b: Any) -> Any:
        if any(isinstance(x, tuple) or (z3.is_expr(x) and x.sort() == LIST) for x in (a, b)):
            raise NotEncodedError("a sum or product of lists")
        match sign:
            case "//":
                return z3.ToInt(a / b) if z3.is_real(a) else _int(a) / _int(b)
            case "%":
                return _int(a) % b
            case _:
                return super().calculate(sign, a, b)

    def every(self, parts: Iterable[Any]) -> Any:
        return z3.And(list(parts))

    def some(self, parts: Iterable[Any]) -> Any:
        return z3.Or(list(parts))

    def no(self, part: Any) -> Any:
        return z3.Not(part)

    def extreme(self, word: str, parts: Sequence[Any]) -> Any:
        if any(z3.is_expr(part) and part.sort() == LIST for part in parts):
            raise NotEncodedError(f"{word} of lists")
        least = parts[0]
        for part in parts[1:]:
            least = z3.If(least < part if word == "min" else least > part, least, part)
        return least

    def apply(self, function: str, arguments: Sequence[Any]) -> Any:
        raise NotEncodedError(function)

    def shape(self, variable: Any) -> Any:
        raise NotEncodedError("a shape as a list")

    def rank(self, variable: Any) -> Any:
        return length(variable) if variable.sort() == LIST else rank(variable)

    def item(self, variable: Any, index: Any) -> Any:
        if isinstance(variable, tuple):
            return variable[index]
        if variable.sort() == LIST:
            return at(variable, index)
        if isinstance(index, int) and index < 0:
            count: Any = rank(variable)
            return dim(variable, count + index)
        return dim(variable, index)


def _int(value: Any) -> Any:
    return z3.IntVal(value) if isinstance(value, int) else value


MEANING = Solver()


class Encoder(TermEncoder):
    """Terms of one rule as z3 terms.

    Args:
        flat: computed numbers become variables of their own, with an equation in `equations`: what
            is to be matched as a pattern may hold no arithmetic.
    """

    def __init__(self, bindings: dict[str, Any], flat: bool = False) -> None:
        self.bindings, self.flat = bindings, flat
        self.equations: list[Any] = []
        self.fresh: list[Any] = []

    def variable(self, name: str) -> Any:
        return self.bindings[name]

    def pair(self, name: str) -> Sequence[Any]:
        return self.bindings[name]

    def call(self, name: str, operands: Sequence[Any], values: Sequence[Any]) -> Any:
        return function_of(name, len(operands))(*operands, *values)

    def listed(self, parts: Sequence[Any]) -> Any:
        return _tuple(len(parts))(*parts) if parts else z3.Const("nothing", LIST)

    def value(self, value: Any) -> Any:
        match value:
            case bool():
                return z3.BoolVal(value)
            case float():
                return z3.RealVal(value)
            case AttrVar():
                return self.bindings[value.name]
            case Size():
                found = _int(compiled_as(value.text, MEANING)(self.bindings))
                return self._named(found) if self.flat else found
            case _:
                return z3.IntVal(value)

    def _named(self, found: Any) -> Any:
        name = z3.FreshConst(found.sort(), "size")
        self.fresh.append(name)
        self.equations.append(name == found)
        return name


def constants_of(rule: Rule, prefix: str = "") -> dict[str, Any]:
    """A z3 constant for each variable of the rule, of its sort."""
    found: dict[str, Any] = {n: z3.Const(prefix + n, TENSOR) for n in variables_of(rule.left)}
    for name, attribute in sorted(attribute_names((*rule.left, *rule.right)).items()):
        if attribute == "sizes":  # of a split: two numbers
            found[name] = tuple(z3.Int(f"{prefix}{name}_{k}") for k in range(2))
        else:
            sort = INT if attribute.endswith("[]") else sort_of(attribute)
            found[name] = z3.Const(prefix + name, sort)
    return found


def consts_in(bindings: dict[str, Any]) -> list[Any]:
    """The z3 constants of bindings."""
    values = [v if isinstance(v, tuple) else (v,) for v in bindings.values()]
    return [part for value in values for part in value]


def same_type(a: Any, b: Any, axes: Sequence[Any]) -> list[Any]:
    """What a rule may assume of its two sides: a rule applies only where their types agree."""
    last: Any = rank(a)
    positions: list[Any] = [*range(4), *axes, last - 1, last - 2]
    return [rank(a) == rank(b), *(dim(a, k) == dim(b, k) for k in positions)]


def extent_axioms() -> list[Any]:
    """No tensor that makes sense has an empty dim."""
    a, i = z3.Const("a", TENSOR), z3.Int("i")
    extent: Any = dim(a, i)
    body = z3.Implies(z3.And(sense(a), i >= 0, i < rank(a)), extent >= 1)
    return [z3.ForAll([a, i], body, patterns=[z3.MultiPattern(sense(a), dim(a, i))])]


def conditions_of(where: Sequence[str], bindings: dict[str, Any]) -> list[Any]:
    """Side conditions as formulas."""
    return [compiled_as(text, MEANING)(bindings) for text in where]
