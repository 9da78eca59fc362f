"""Rules under other names of their tensor variables, conditions and sizes included."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..rule import Node, Out, Rule, Size, Term, Var


def rename_rule(rule: Rule, names: Mapping[str, str]) -> Rule:
    """The rule with tensor variables renamed everywhere at once."""

    def text(old: str) -> str:
        pattern = r"(?<![.\w])([A-Za-z_]\w*)(?=\.)"
        return re.sub(pattern, lambda m: names.get(m.group(1), m.group(1)), old)

    def value(old: Any) -> Any:
        match old:
            case Size():
                return Size(text(old.text))
            case tuple():
                return tuple(value(v) for v in old)
            case _:
                return old

    known: dict[Node, Node] = {}

    def build(term: Term) -> Term:
        match term:
            case Var():
                return Var(names.get(term.name, term.name))
            case Out():
                return Out(node(term.node), term.index)
            case Node():
                return node(term)

    def node(old: Node) -> Node:
        if old not in known:
            operands = tuple(build(t) for t in old.operands)
            known[old] = Node(old.op, operands, tuple((n, value(v)) for n, v in old.attributes))
        return known[old]

    return replace(
        rule,
        left=tuple(build(t) for t in rule.left),
        right=tuple(build(t) for t in rule.right),
        where=tuple(text(w) for w in rule.where),
    )
