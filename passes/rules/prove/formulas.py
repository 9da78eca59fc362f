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

from ....dialects.graph.base import property_order
from ..conditions import Meaning, compiled_as
from ..exact import graph_ops
from ..rule import CONSTANTS, AttrVar, Node, Out, Rule, Size, Term, Var, variables_of

TENSOR, LIST = z3.DeclareSort("Tensor"), z3.DeclareSort("List")
INT, BOOL = z3.IntSort(), z3.BoolSort()
sense = z3.Function("sense", TENSOR, BOOL)
dim = z3.Function("dim", TENSOR, INT, INT)
rank = z3.Function("rank", TENSOR, INT)
at = z3.Function("at", LIST, INT, INT)
length = z3.Function("length", LIST, INT)

_INTS = ("axis", "groups", "size", "channels")
_BOOLS = ("transpose_a", "transpose_b", "ceil_mode", "count_include_pad")


def sort_of(attribute: str) -> Any:
    """The sort of an attribute."""
    if attribute in _INTS or attribute.startswith("size_"):
        return INT
    return BOOL if attribute in _BOOLS else z3.RealSort() if attribute == "fill" else LIST


@cache
def attributes_of(op: str) -> tuple[str, ...]:
    """Names of an op's attributes, in a fixed order; a constant's are those that it takes."""
    constants = {
        "ones": ("shape",),
        "identity_matrix": ("size",),
        "identity_kernel": ("channels", "kernel"),
        "pool_kernel": ("channels", "kernel"),
        "pair_mask": ("groups", "shape"),
    }
    if op in constants:
        return constants[op]
    return ("axis", "sizes") if op == "split" else tuple(property_order(graph_ops()[op]))


@cache
def function_of(key: str, arity: int) -> Any:
    """The uninterpreted function of an op; `key` as `name_of` says."""
    op = key.split(".")[0].split("/")[0]
    sorts = [sort_of(name) for name in attributes_of(op)]
    if op == "split":
        sorts = [INT, INT, INT]
    return z3.Function(key, *[TENSOR] * arity, *sorts, TENSOR)


def name_of(term: Node | Out) -> str:
    """An op's name for the solver: results of a split apart, a conv with bias apart."""
    if isinstance(term, Out):
        return f"{term.node.op}.{term.index}"
    return f"{term.op}/{len(term.operands)}" if len(term.operands) > 2 else term.op


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
        least = parts[0]
        for part in parts[1:]:
            least = z3.If(least < part if word == "min" else least > part, least, part)
        return least

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


class Encoder:
    """Terms of one rule as z3 terms.

    Args:
        flat: computed numbers become variables of their own, with an equation in `equations`: what
            is to be matched as a pattern may hold no arithmetic.
    """

    def __init__(self, bindings: dict[str, Any], flat: bool = False) -> None:
        self.bindings, self.flat = bindings, flat
        self.equations: list[Any] = []
        self.fresh: list[Any] = []

    def term(self, term: Term) -> Any:
        if isinstance(term, Var):
            return self.bindings[term.name]
        node = term.node if isinstance(term, Out) else term
        operands = [self.term(operand) for operand in node.operands]
        values = self._attributes(node)
        return function_of(name_of(term), len(operands))(*operands, *values)

    def _attributes(self, node: Node) -> list[Any]:
        if node.op == "split":
            sizes = node.attribute("sizes")
            if isinstance(sizes, AttrVar):
                numbers = list(self.bindings[sizes.name])
            else:
                assert isinstance(sizes, tuple)
                numbers = [self._number(part) for part in sizes]
            return [self._number(node.attribute("axis")), *numbers]
        given = dict(node.attributes)
        defaults = {} if node.op in CONSTANTS else graph_ops()[node.op].DEFAULTS
        return [self._value(n, given.get(n, defaults.get(n))) for n in attributes_of(node.op)]

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, tuple):
            numbers = [self._number(v) for v in value]
            return _tuple(len(numbers))(*numbers) if numbers else z3.Const("nothing", LIST)
        if isinstance(value, bool):
            return z3.BoolVal(value)
        if isinstance(value, float):
            return z3.RealVal(value)
        return self.bindings[value.name] if isinstance(value, AttrVar) else self._number(value)

    def _number(self, value: Any) -> Any:
        match value:
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
    for name, attribute in _attribute_sorts(rule).items():
        parts = tuple(z3.Int(f"{prefix}{name}_{k}") for k in range(2))
        found[name] = parts if attribute is None else z3.Const(prefix + name, attribute)
    return found


def consts_in(bindings: dict[str, Any]) -> list[Any]:
    """The z3 constants of bindings."""
    values = [v if isinstance(v, tuple) else (v,) for v in bindings.values()]
    return [part for value in values for part in value]


def same_type(a: Any, b: Any, axes: Sequence[Any]) -> list[Any]:
    """What a rule may assume of its two sides: a rule applies only where their types agree."""
    last: Any = rank(a)
    places: list[Any] = [*range(4), *axes, last - 1, last - 2]
    return [rank(a) == rank(b), *(dim(a, k) == dim(b, k) for k in places)]


def extent_axioms() -> list[Any]:
    """No tensor that makes sense has an empty dim."""
    a, i = z3.Const("a", TENSOR), z3.Int("i")
    extent: Any = dim(a, i)
    body = z3.Implies(z3.And(sense(a), i >= 0, i < rank(a)), extent >= 1)
    return [z3.ForAll([a, i], body, patterns=[z3.MultiPattern(sense(a), dim(a, i))])]


def _attribute_sorts(rule: Rule) -> dict[str, Any]:
    """The sort of each attribute variable; None for the two sizes of a split."""
    found: dict[str, Any] = {}
    stack: list[Term] = [*rule.left, *rule.right]
    while stack:
        term = stack.pop()
        if isinstance(term, Var):
            continue
        node = term.node if isinstance(term, Out) else term
        stack += node.operands
        for name, value in node.attributes:
            if isinstance(value, AttrVar):
                found[value.name] = None if name == "sizes" else sort_of(name)
            for part in value if isinstance(value, tuple) else ():
                if isinstance(part, AttrVar):
                    found[part.name] = INT
    return dict(sorted(found.items()))


def conditions_of(where: Sequence[str], bindings: dict[str, Any]) -> list[Any]:
    """Side conditions as formulas."""
    return [compiled_as(text, MEANING)(bindings) for text in where]
