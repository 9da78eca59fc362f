"""Left sides of rules as bodies of egglog rules.

One output of a left side is one pattern; equal patterns of several rules are one (as in TENSAT),
found up to the names of variables. A rule with several outputs joins the matches of its patterns.
Conditions are not part of a body: Python decides them with the answers (answers.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any

from ...dialects.errors import UserError
from ..rules.op_table import RESULTS, OpTable, attribute_of
from ..rules.rule import (
    AttrValue,
    AttrVar,
    Node,
    Out,
    Rule,
    Size,
    Term,
    Var,
    means_two,
)
from .encoding import Encoding, Shape


@dataclass(frozen=True)
class EGraphPattern:
    """One output of a left side, its variables renamed v0, v1, .. and s0, s1, ..

    Attributes:
        tensors, attributes: its variables, in order of appearance.
    """

    term: Term
    tensors: tuple[str, ...]
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class LeftPatterns:
    """A left side: its patterns, and for each how its variables are called in the rule."""

    rule: Rule
    patterns: tuple[EGraphPattern, ...]
    names: tuple[dict[str, str], ...]


def left_of(rule: Rule) -> LeftPatterns:
    """Take a rule's left side apart."""
    patterns, names = list[EGraphPattern](), list[dict[str, str]]()
    for term in rule.left:
        naming = _Naming()
        bare = naming.term(term)
        columns = tuple(naming.tensors.values()), tuple(naming.attributes.values())
        patterns.append(EGraphPattern(bare, *columns))
        names.append({new: old for old, new in (naming.tensors | naming.attributes).items()})
    return LeftPatterns(rule, tuple(patterns), tuple(names))


@lru_cache(maxsize=1 << 12)
def without_names(rule: Rule) -> tuple[object, ...]:
    """What two rules have in common that say the same: all but names."""
    naming = _Naming()
    sides = tuple(map(naming.term, rule.left)), tuple(map(naming.term, rule.right))
    names = {**naming.tensors, **naming.attributes}
    return *sides, tuple(sorted(renamed(c, names) for c in rule.where))


class _Naming:
    """Renames variables in order of appearance."""

    def __init__(self) -> None:
        self.tensors: dict[str, str] = {}
        self.attributes: dict[str, str] = {}

    def term(self, term: Term) -> Term:
        match term:
            case Var():
                return Var(self.tensors.setdefault(term.name, f"v{len(self.tensors)}"))
            case Out():
                node = self.term(term.node)
                assert isinstance(node, Node)
                return Out(node, term.index)
            case Node():
                operands = tuple(map(self.term, term.operands))
                values = tuple((name, self.value(value)) for name, value in term.attributes)
                return Node(term.op, operands, values)

    def value(self, value: AttrValue) -> AttrValue:
        if isinstance(value, tuple):
            return tuple(a if not isinstance(a, AttrVar | Size) else self._atom(a) for a in value)
        return self._atom(value) if isinstance(value, AttrVar | Size) else value

    def _atom(self, atom: AttrVar | Size) -> AttrVar | Size:
        if isinstance(atom, AttrVar):
            return AttrVar(self.attributes.setdefault(atom.name, f"s{len(self.attributes)}"))
        return Size(renamed(atom.text, {**self.tensors, **self.attributes}))


@dataclass
class RuleBody:
    """An egglog rule body for a pattern, and the columns of a match.

    Attributes:
        wholes: attribute variables that are a column, by the column's variable.
        checks: columns whose attribute is to be compared with a value that holds variables.
    """

    facts: list[str]  # that must hold
    root: str  # variable of the whole
    wholes: dict[str, str]
    checks: list[tuple[str, AttrValue]]


@dataclass
class Bodies:
    """Makes bodies of the shapes that an encoding knows."""

    table: OpTable
    prefix: str
    encoding: Encoding

    def of(self, pattern: EGraphPattern) -> Iterator[RuleBody]:
        """One body for each way the pattern's ops may be written (optional attributes)."""
        nodes = list(_nodes(pattern.term))
        options = [self._shapes(node) for node in nodes]
        for choice in product(*options):
            maker = _BodyMaker(self, dict(zip(nodes, choice, strict=True)))
            yield maker.body(pattern)

    def _shapes(self, node: Node) -> list[Shape]:
        op = self.prefix + node.op
        given = {name for name, _ in node.attributes}
        known = {*given, *dict(self.table.complete(op, {})), RESULTS}
        return [
            s
            for s in self.encoding.shapes
            if s[0] == op and s[1] == len(node.operands) and given <= set(s[2]) <= known
        ]


def _nodes(term: Term) -> Iterator[Node]:
    match term:
        case Var():
            return
        case Out():
            yield from _nodes(term.node)
        case Node():
            yield term
            for operand in term.operands:
                yield from _nodes(operand)


@dataclass
class _BodyMaker:
    """Writes one body."""

    bodies: Bodies
    shapes: dict[Node, Shape]
    facts: list[str] = field(default_factory=list[str])
    wholes: dict[str, str] = field(default_factory=dict[str, str])
    checks: list[tuple[str, AttrValue]] = field(default_factory=list[tuple[str, AttrValue]])
    free: int = 0

    def body(self, pattern: EGraphPattern) -> RuleBody:
        root = self._term(pattern.term)
        return RuleBody(self.facts, root, self.wholes, self.checks)

    def _term(self, term: Term) -> str:
        encoding = self.bodies.encoding
        match term:
            case Var():
                return f"?{term.name}"
            case Out():
                inner = self._term(term.node)
                here = self._fresh("e")
                self.facts.append(f"(= {here} (part {inner} {term.index}))")
                return here
            case Node():
                operands = [self._term(operand) for operand in term.operands]
                shape = self.shapes[term]
                columns = [self._attribute(term, shape, name) for name in shape[2]]
                here = self._fresh("e")
                call = " ".join([encoding.constructor(shape), *operands, *columns])
                self.facts.append(f"(= {here} ({call}))")
                return here

    def _fresh(self, letter: str) -> str:
        self.free += 1
        return f"?{letter}{self.free}"

    def _attribute(self, node: Node, shape: Shape, name: str) -> str:
        value = node.attribute(name)
        if value is None:
            default = dict(self.bodies.table.complete(shape[0], {})).get(name)
            return (
                self._fresh("w")
                if default is None
                else str(self.bodies.encoding.attribute(default))
            )
        if isinstance(value, AttrVar):
            column = self.wholes.setdefault(value.name, f"?{value.name}")
            if means_two(node, name):
                first, second = (AttrVar(f"{value.name}_{k}") for k in ("first", "second"))
                self.checks.append((column, (first, second)))
            return column
        atoms = value if isinstance(value, tuple) else (value,)
        if any(isinstance(atom, AttrVar | Size) for atom in atoms):
            column = self._fresh("c")
            self.checks.append((column, value))
            return column
        value = attribute_of(self.bodies.table, shape[0], name, value)
        return str(self.bodies.encoding.attribute(value))


def unify(value: AttrValue, found: Any, bindings: dict[str, Any], size: Any) -> bool:
    """Match an attribute's value that holds variables; binds what is not bound.

    Args:
        size: evaluates a `Size` under the bindings.
    """
    if isinstance(value, tuple):
        if not isinstance(found, tuple) or len(found) != len(value):
            return False
        return all(unify(v, f, bindings, size) for v, f in zip(value, found, strict=True))
    if isinstance(value, AttrVar):
        return bindings.setdefault(value.name, found) == found
    if isinstance(value, Size):
        try:
            return size(value.text, bindings) == found
        except UserError:
            return False
    return value == found and isinstance(value, bool) == isinstance(found, bool)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A condition with other names for its variables."""
    return re.sub(r"(?<![.\w])[A-Za-z_]\w*", lambda m: names.get(m[0], m[0]), text)


def value_renamed(value: AttrValue, names: Mapping[str, str]) -> AttrValue:
    """An attribute's value with other names for its variables."""
    if isinstance(value, tuple):
        return tuple(value_renamed(v, names) for v in value)  # type: ignore[return-value]
    if isinstance(value, AttrVar):
        return AttrVar(names.get(value.name, value.name))  # a part of a pair has its own name
    return Size(renamed(value.text, names)) if isinstance(value, Size) else value
