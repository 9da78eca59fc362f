"""TENSAT's rule files (converted from TASO's) as rules of isoform.

    Path("tensat.rules").write_text(print_rules(convert(single_text, multi_text)))

Single-output rules are S-expressions `left=>right`, one per line. In the other file two consecutive
lines are one rule with two outputs. The differences from our rules are made explicit here:

- `conv2d sh sw pad act x w`: groups follow from the channels there; here every convolution has one
  group, except in rules that add groups (below). Pad 0 keeps the size: any pads, but the same ones.
- `act` 2 is a separate relu here, 0 none; others do not occur.
- `concat axis rank a b`: the rank is a condition on the variables joined.
- `split axis x` splits where x was last concatenated: here it has sizes.
- concat(conv(x, w), conv(y, v)) = conv(concat(x, y), concat(w, v), groups added) is false unless
  both have equally many output channels per group: that condition is added (four rules of the
  file).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..dialects.errors import UserError
from ..passes.rules.rule import (
    AttrValue,
    AttrVar,
    Node,
    Out,
    Rule,
    Size,
    Term,
    Var,
    subterms,
)

Expr: TypeAlias = "str | list[Expr]"

_BINARY = {"ewadd": "add", "ewmul": "mul"}
_UNARY = {"relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid"}


def convert(single: str, multi: str = "") -> tuple[Rule, ...]:
    """The rules of both files, without those that become `x => x`.

    Raises:
        UserError: a line is not one of TENSAT's.
    """
    rules = list[Rule]()
    lines = [line for line in single.splitlines() if line.strip()]
    for k, line in enumerate(lines):
        rules.append(_rule(f"tensat-{k}", f"TENSAT, converted from TASO, rule {k}", [line]))
    pairs = [line for line in multi.splitlines() if line.strip()]
    if len(pairs) % 2:
        raise UserError("rules with two outputs are pairs of lines", found=len(pairs))
    for k in range(0, len(pairs), 2):
        source = f"TENSAT, converted from TASO, two outputs, rule {k // 2}"
        rules.append(_rule(f"tensat-multi-{k // 2}", source, pairs[k : k + 2]))
    return tuple(rule for rule in rules if rule.left != rule.right)


def _rule(name: str, source: str, lines: Sequence[str]) -> Rule:
    sides = [_sides(line) for line in lines]
    lefts, rights = [side[0] for side in sides], [side[1] for side in sides]
    reader = _Reader(groups=len(lines) == 1 and _adds_groups(*sides[0]))
    left = tuple(reader.term(e) for e in lefts)
    right = tuple(reader.term(e, right=True) for e in rights)
    unused = {n for n in _variables(right) if n not in _variables(left)}
    if unused:
        raise UserError(f"rule '{name}' does not bind {', '.join(sorted(unused))}", where=source)
    return Rule(name, left, right, tuple(dict.fromkeys(reader.where)), "checked-only", source)


def _variables(terms: tuple[Term, ...]) -> list[str]:
    return [t.name for t in subterms(terms) if isinstance(t, Var)]


def _sides(line: str) -> tuple[Expr, Expr]:
    left, arrow, right = line.partition("=>")
    if not arrow:
        raise UserError("a rule reads left=>right", found=line.strip()[:60])
    return _parse(left), _parse(right)


def _parse(text: str) -> Expr:
    """An S-expression. Raises UserError where its brackets do not match."""
    stack: list[list[Expr]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise UserError("a bracket too many", found=text.strip()[:60])
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise UserError("this is not an expression", found=text.strip()[:60])
    return stack[0][0]


def _adds_groups(left: Expr, right: Expr) -> bool:
    """concat over channels of convolutions of different inputs, as one convolution."""
    match left, right:
        case (["concat", "1", "4", ["conv2d", *a], ["conv2d", *b]], _):
            return a[4] != b[4]
        case (_, ["concat", "1", "4", ["conv2d", *a], ["conv2d", *b]]):
            return a[4] != b[4]
        case _:
            return False


@dataclass
class _Reader:
    """Turns expressions into terms and collects their conditions on shapes."""

    groups: bool
    where: list[str] = field(default_factory=list[str])
    _convs: int = 0

    def term(self, expr: Expr, right: bool = False) -> Term:
        match expr:
            case str() if expr.startswith("?"):
                return Var(expr[1:])
            case ["matmul", "0", a, b]:
                return Node("matmul", (self.term(a, right), self.term(b, right)))
            case [str(op), a, b] if op in _BINARY:
                return Node(_BINARY[op], (self.term(a, right), self.term(b, right)))
            case [str(op), a] if op in _UNARY:
                return Node(_UNARY[op], (self.term(a, right),))
            case ["concat", str(axis), str(rank), a, b]:
                operands = self.term(a, right), self.term(b, right)
                self.where += [f"{name}.rank == {rank}" for t in operands for name in _spine(t)]
                return Node("concat", operands, (("axis", int(axis)),))
            case ["conv2d", "1", "1", "0", str(act), x, w] if act in ("0", "2"):
                conv = self._conv(self.term(x, right), self.term(w, right), right)
                return Node("relu", (conv,)) if act == "2" else conv
            case ["split_0" | "split_1" as part, ["split", str(axis), x]]:
                inner = self.term(x, right)
                sizes = _sizes(inner)
                node = Node("split", (inner,), (("axis", int(axis)), ("sizes", sizes)))
                return Out(node, int(part[-1]))
            case _:
                raise UserError("not an expression of TENSAT's rules", found=str(expr)[:60])

    def _conv(self, x: Term, w: Term, right: bool) -> Node:
        groups: AttrValue = 1
        if self.groups and not right:
            groups = AttrVar(f"g{self._convs}")
            assert isinstance(w, Var)
            if self._convs:
                first = self._weights
                self.where.append(f"{first}.shape[0] * g1 == {w.name}.shape[0] * g0")
            self._weights = w.name
            self._convs += 1
        elif self.groups:
            groups = Size("g0 + g1")
        values: list[tuple[str, AttrValue]] = [
            ("dilations", (1, 1)),
            ("groups", groups),
            ("pads", AttrVar("pads")),
            ("strides", (1, 1)),
        ]
        return Node("conv", (x, w), tuple(values))

    _weights: str = ""


def _spine(term: Term) -> Iterator[str]:
    """Variables of the same rank as a term, found through elementwise ops and concatenations."""
    match term:
        case Var():
            yield term.name
        case Node(op="add" | "mul" | "relu" | "tanh" | "sigmoid" | "concat" | "matmul"):
            for operand in term.operands:
                yield from _spine(operand)
        case _:
            return


def _sizes(term: Term) -> tuple[Size, ...]:
    """Where a term was last concatenated."""
    for inner in subterms((term,)):
        if isinstance(inner, Node) and inner.op == "concat":
            axis = dict(inner.attributes)["axis"]
            names = [o.name for o in inner.operands if isinstance(o, Var)]
            return tuple(Size(f"{name}.shape[{axis}]") for name in names)
    raise UserError("a split of what was not concatenated")
