"""Rules written in egglog: a file of rewrites and rules, read as rules of this package.

    (rewrite (relu (relu x)) (relu x) :name "relu-twice")
    (rewrite (matmul (matmul a b) c) (matmul a (matmul b c)) :when ((= (rank a) 2)))
    (rule ((= e (matmul a b)) (= f (matmul a c)) (= (rank a) 2))
          ((let y (split (matmul a (concat b c :axis 1)) :axis 1
                         :sizes (vec-of (dim b 1) (dim c 1))))
           (union e (part y 0)) (union f (part y 1))) :name "merge")

Ops are called by their names, tensors first, then attributes by keyword: numbers, true, false,
"text", a variable, `(vec-of ..)`, or a size of `dim`, `rank`, `at` (an entry of a list), `min`,
`max` and `+ - * / %`. An attribute that is not given has its op's default. `(part y k)` is one
result of several. Facts that are not an op are conditions: `= != < <= > >= and or not` over sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...dialects.errors import UserError
from .conditions import compiled
from .rule import AttrValue, AttrVar, Node, Out, Rule, Size, Term, Var, variables_of

_SIGNS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SUMS = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%"}
_WORDS = ("and", "or", "not")
_SIZES = ("dim", "rank", "at", "min", "max", *_SUMS)
_COMMANDS = "(rewrite ..), (birewrite ..) or (rule ..)"


def parse_egglog(text: str, where: str = "") -> tuple[Rule, ...]:
    """The rules of a text, unproved.

    Raises:
        UserError: egglog does not read it, or a command says what no rule can.
    """
    from egglog.bindings import EggSmolError
    from egglog.bindings import EGraph as Egglog

    try:
        commands = Egglog().parse_program(text)
    except EggSmolError as error:
        raise UserError(f"egglog does not read this: {error}", where=where) from error
    rules = list[Rule]()
    for command in commands:
        name = f"egglog-{len(rules)}"
        try:
            rules += _rules_of(command, name)
        except UserError as error:
            error.where = where
            raise
    return tuple(rules)


def _rules_of(command: Any, name: str) -> list[Rule]:
    from egglog import bindings

    reader = _Reader()
    match command:
        case bindings.RewriteCommand():
            return [reader.rewrite(command.rewrite, name)]
        case bindings.BiRewriteCommand():
            rule = reader.rewrite(command.rewrite, name)
            return [rule, rule.reversed()]
        case bindings.RuleCommand():
            return [reader.rule(command.rule, name)]
        case _:
            found = type(command).__name__
            raise UserError("this is not a rule", expected=_COMMANDS, found=found)


@dataclass
class _Reader:
    """Reads one command.

    Attributes:
        named: tensors that facts and `let` name.
    """

    named: dict[str, Any] = field(default_factory=dict[str, Any])
    _open: list[str] = field(default_factory=list[str])

    def rewrite(self, command: Any, name: str) -> Rule:
        conditions = [c for fact in command.conditions for c in self._conditions(fact)]
        left, right = self.tensor(command.lhs), self.tensor(command.rhs)
        return _rule(command.name or name, [left], [right], conditions)

    def rule(self, command: Any, name: str) -> Rule:
        from egglog import bindings

        conditions = [c for fact in command.body for c in self._conditions(fact)]
        facts, left, right = set(self.named), list[Term](), list[Term]()
        for action in command.head:
            match action:
                case bindings.Let():
                    self.named[action.lhs] = action.rhs
                case bindings.Union():
                    left.append(self.tensor(action.lhs))
                    right.append(self.tensor(action.rhs))
                case _:
                    found = type(action).__name__.lower()
                    raise UserError("no action of a rule", expected="let or union", found=found)
        reached = {name for term in left for name in self._inside(term)}
        for fact in sorted(facts):
            if not reached >= set(self._inside(self.tensor(self.named[fact]))):
                raise UserError(f"the fact about '{fact}' is not part of what is joined")
        return _rule(command.name or name, left, right, conditions)

    def _inside(self, term: Term) -> Iterator[str]:
        """The ops and variables in a term, as text."""
        yield str(term)
        match term:
            case Out():
                yield from self._inside(term.node)
            case Node():
                for operand in term.operands:
                    yield from self._inside(operand)
            case Var():
                pass

    def _conditions(self, fact: Any) -> Iterator[str]:
        """What a fact asks; one that says what a tensor is names it."""
        from egglog import bindings

        if not isinstance(fact, bindings.Eq):
            yield self.condition(fact.expr)
            return
        for one, other in ((fact.left, fact.right), (fact.right, fact.left)):
            is_op = isinstance(other, bindings.Call) and other.name not in _SIZES
            if isinstance(one, bindings.Var) and is_op:
                self.named[one.name] = other
                return
        yield f"{self.size(fact.left)} == {self.size(fact.right)}"

    def tensor(self, expr: Any) -> Term:
        """An expression as a term."""
        from egglog import bindings

        match expr:
            case bindings.Var() if expr.name in self._open:
                raise UserError(f"'{expr.name}' is part of itself")
            case bindings.Var() if expr.name in self.named:
                self._open.append(expr.name)
                term = self.tensor(self.named[expr.name])
                self._open.pop()
                return term
            case bindings.Var():
                return Var(_plain(expr.name))
            case bindings.Call(name="part", args=[inner, index]):
                node, position = self.tensor(inner), self.value(index)
                if not isinstance(node, Node) or not isinstance(position, int):
                    raise UserError("a part is of an op with several results, by a number")
                return Out(node, position)
            case bindings.Call():
                return self._op(expr)
            case _:
                raise UserError("a number is not a tensor")

    def _op(self, call: Any) -> Node:
        from egglog import bindings

        keys = [isinstance(a, bindings.Var) and a.name.startswith(":") for a in call.args]
        count = keys.index(True) if True in keys else len(keys)
        rest = call.args[count:]
        if len(rest) % 2 or not all(keys[count::2]):
            raise UserError(f"attributes of {call.name} read :name value")
        attributes = {k.name[1:]: self.value(v) for k, v in zip(rest[::2], rest[1::2], strict=True)}
        operands = tuple(map(self.tensor, call.args[:count]))
        return Node(call.name, operands, tuple(sorted(attributes.items())))

    def value(self, expr: Any) -> AttrValue:
        """An expression as an attribute's value."""
        from egglog import bindings

        match expr:
            case bindings.Lit():
                return _literal(expr)
            case bindings.Var():
                return AttrVar(_plain(expr.name))
            case bindings.Call(name="vec-of"):
                return tuple(self.value(item) for item in expr.args)  # type: ignore[return-value]
            case _:
                return Size(self.size(expr))

    def size(self, expr: Any) -> str:
        """An expression over sizes, as conditions.py reads it."""
        from egglog import bindings

        match expr:
            case bindings.Lit():
                return str(_literal(expr)).lower()
            case bindings.Var():
                return _plain(expr.name)
            case bindings.Call(name="dim" | "at" as name, args=[of, index]):
                shape = ".shape" if name == "dim" else ""
                return f"{self.size(of)}{shape}[{self.size(index)}]"
            case bindings.Call(name="rank", args=[of]):
                return f"{self.size(of)}.rank"
            case bindings.Call(name="min" | "max" as name):
                return f"{name}({', '.join(map(self.size, expr.args))})"
            case bindings.Call() if expr.name in _SUMS and len(expr.args) > 1:
                return f"({f' {_SUMS[expr.name]} '.join(map(self.size, expr.args))})"
            case _:
                raise UserError(f"no size: {expr.name}", expected=", ".join(_SIZES))

    def condition(self, expr: Any) -> str:
        """A fact that is not an equation."""
        from egglog import bindings

        match expr:
            case bindings.Call(name="not", args=[inner]):
                return f"not ({self.condition(inner)})"
            case bindings.Call(name="and" | "or" as name):
                return f" {name} ".join(f"({self.condition(inner)})" for inner in expr.args)
            case bindings.Call() if expr.name in _SIGNS and len(expr.args) == 2:
                return f" {_SIGNS[expr.name]} ".join(map(self.size, expr.args))
            case _:
                expected = ", ".join((*_SIGNS, *_WORDS))
                raise UserError(
                    "this is not a condition", expected=expected, found=getattr(expr, "name", "")
                )


def _literal(expr: Any) -> int | float | bool | str:
    value = expr.value
    if not hasattr(value, "value"):
        raise UserError("() is not a value")
    return value.value


def _plain(name: str) -> str:
    return name.removeprefix("?")


def _rule(name: str, left: Sequence[Term], right: Sequence[Term], where: Sequence[str]) -> Rule:
    for condition in where:
        compiled(condition)
    if not left:
        raise UserError(f"rule '{name}' joins nothing", expected="(union ..)")
    unbound = set(variables_of(tuple(right))) - set(variables_of(tuple(left)))
    if unbound:
        raise UserError(f"rule '{name}' does not bind '{min(unbound)}'")
    return Rule(name, tuple(left), tuple(right), tuple(where), source="egglog")
