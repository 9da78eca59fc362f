"""Side conditions of rules as facts of egglog's rule bodies.

What compiles is decided here once: conjunctions of comparisons of sums over shapes, ranks and
attributes. The rest (`or`, `not`, whole lists compared, division of what may be negative) is left
to conditions.py, which is asked about every match then.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_SUM: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_WHOLE: dict[type[ast.operator], str] = {ast.FloorDiv: "/", ast.Mod: "%"}


class _LeftOut(Exception):
    """This condition is not one of those that compile."""


@dataclass
class Guards:
    """Facts of one rule body; tensors and attributes by their variables in it."""

    tensors: dict[str, str]
    attributes: dict[str, str]
    facts: list[str] = field(default_factory=list[str])
    _known: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, text: str) -> bool:
        """Add a condition; False where it does not compile (then nothing is added)."""
        before, known = list(self.facts), dict(self._known)
        try:
            self._condition(ast.parse(text.replace("?", ""), mode="eval").body)
        except (_LeftOut, SyntaxError):
            self.facts, self._known = before, known
            return False
        return True

    def _condition(self, node: ast.expr) -> None:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                for value in values:
                    self._condition(value)
            case ast.Compare(left=left, ops=ops, comparators=rest):
                sides = [left, *rest]
                if sum(isinstance(side, ast.Name) for side in sides) > 1:
                    raise _LeftOut  # both may be lists
                texts = [self._sum(side) for side in sides]
                for op, a, b in zip(ops, texts, texts[1:], strict=False):
                    if type(op) not in _COMPARE:
                        raise _LeftOut
                    self.facts.append(f"({_COMPARE[type(op)]} {a} {b})")
            case _:
                raise _LeftOut

    def _sum(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=bool()):
                raise _LeftOut
            case ast.Constant(value=int(value)):
                return str(value)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return f"(- 0 {self._sum(inner)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SUM:
                return f"({_SUM[type(op)]} {self._sum(left)} {self._sum(right)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _WHOLE:
                if any(self._may_be_negative(side) for side in (left, right)):
                    raise _LeftOut  # egglog rounds to zero
                return f"({_WHOLE[type(op)]} {self._sum(left)} {self._sum(right)})"
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=args):
                texts = [self._sum(arg) for arg in args]
                while len(texts) > 1:
                    texts[:2] = [f"({name} {texts[0]} {texts[1]})"]
                return texts[0]
            case _:
                return self._variable(node)

    def _variable(self, node: ast.expr) -> str:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="rank") if name in self.tensors:
                return self._bound(f"(rank {self._type(name)})")
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=at
            ):
                if name not in self.tensors:
                    raise _LeftOut
                return self._bound(f"(dim {self._type(name)} {_position(at)})")
            case ast.Subscript(value=ast.Name(id=name), slice=at) if name in self.attributes:
                return self._bound(f"(item {self.attributes[name]} {_position(at)})")
            case ast.Name(id=name) if name in self.attributes:
                return self._bound(f"(whole {self.attributes[name]})")
            case _:
                raise _LeftOut

    def _type(self, name: str) -> str:
        return self._bound(f"(typ {self.tensors[name]})")

    def _may_be_negative(self, node: ast.expr) -> bool:
        return any(
            isinstance(inner, ast.Sub | ast.USub)
            or (isinstance(inner, ast.Name) and inner.id not in self.tensors)
            for inner in ast.walk(node)
        )

    def _bound(self, call: str) -> str:
        """The variable that holds a value looked up: one look-up for each."""
        if call not in self._known:
            self._known[call] = f"?g{len(self._known)}"
            self.facts.append(f"(= {self._known[call]} {call})")
        return self._known[call]


def _position(node: ast.expr) -> int:
    """A literal index; negative ones are stored beside the others."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            raise _LeftOut


def renamed(text: str, names: dict[str, str]) -> str:
    """A condition with other names for its variables."""
    return re.sub(r"(?<![.\w])[A-Za-z_]\w*", lambda m: names.get(m[0], m[0]), text)
