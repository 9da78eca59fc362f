"""How ops, attributes and types are written in egglog: names of constructors, numbers of values.

    (constructor V (i64) T)              class k of the program, by its number
    (constructor graph.relu-1 (T) T)     one for each op, operand count and attribute names: the
                                         operands, then the attributes as numbers of their values
    (constructor part (T i64) T)         result i of an op with several
    (function typ (T) i64 ..)            the type of a class, by its number
    (function level (T) i64 ..)          longest way from the inputs in the program; of what a rule
                                         made that of the op it stands in for
    (relation weight (T))                classes that depend on weights and constants alone
    (function by-graph.relu-1 ..)        the rule that made an e-node first; -1: the program
    (relation in-graph.relu-1 ..)        e-nodes as rows of numbers: class, operands, attributes,
                                         type, level, rule; the rules of `in` make the e-nodes

Programs go in as rows in files, which egglog reads a hundred times as fast as text: a fact at top
level is compiled as a rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute

from ..rules.op_table import Head, Types
from .egraph import PROJECT

Shape: TypeAlias = "tuple[str, int, tuple[str, ...]]"
"""What has its own constructor in egglog: op, operand count, names of the attributes."""

Row: TypeAlias = "tuple[int, ...]"

PROGRAM = -1
"""Stands for the rule that made an e-node of the program."""

_PRELUDE = """
(sort T)
(constructor V (i64) T)
(constructor part (T i64) T)
(function typ (T) i64 :merge old)
(function level (T) i64 :merge (min old new))
(relation weight (T))
(function by-part (T i64) i64 :merge old)
(ruleset in)
(ruleset analysis)
(relation same (i64 i64))
(rule ((same ?a ?b)) ((union (V ?a) (V ?b))) :ruleset in)
(relation leaf (i64 i64 i64))
(rule ((leaf ?k ?t ?l)) ((set (typ (V ?k)) ?t) (set (level (V ?k)) ?l)) :ruleset in)
(relation light (i64))
(rule ((light ?k)) ((weight (V ?k))) :ruleset in)
(relation in-part (i64 i64 i64 i64 i64 i64))
(rule ((in-part ?k ?a ?i ?t ?l ?r)) ((let ?n (part (V ?a) ?i)) (union (V ?k) ?n) \
(set (typ ?n) ?t) (set (level ?n) ?l) (set (by-part (V ?a) ?i) ?r)) :ruleset in)
(rule ((= ?e (part ?a ?i)) (weight ?a)) ((weight ?e)) :ruleset analysis)
"""


def shape_of(head: Head, operands: int) -> Shape:
    """The shape of an e-node."""
    return head.op, operands, tuple(name for name, _ in head.attributes)


@dataclass
class Encoding:
    """Names and numbers of one rule set, and of the program that is being saturated."""

    shapes: tuple[Shape, ...]
    attributes: list[Attribute] = field(default_factory=list[Attribute])
    types: list[Types] = field(default_factory=list[Types])
    _numbers: dict[Attribute, int] = field(default_factory=dict[Attribute, int])
    _kinds: dict[Types, int] = field(default_factory=dict[Types, int])
    _names: dict[Shape, str] = field(default_factory=dict[Shape, str])
    _fixed: int = 0

    def __post_init__(self) -> None:
        taken = dict[str, int]()
        for shape in self.shapes:
            name = f"{shape[0]}-{shape[1]}"
            taken[name] = taken.get(name, 0) + 1
            self._names[shape] = name if taken[name] == 1 else f"{name}-{taken[name]}"

    def constructor(self, shape: Shape | None) -> str:
        """The constructor of a shape; None stands for one result of several."""
        return "part" if shape is None else self._names[shape]

    def attribute(self, attribute: Attribute) -> int:
        """The number of an attribute's value."""
        known = self._numbers.setdefault(attribute, len(self.attributes))
        if known == len(self.attributes):
            self.attributes.append(attribute)
        return known

    def type(self, types: Types) -> int:
        """The number of a class's type: of several for the results of one op together."""
        known = self._kinds.setdefault(types, len(self.types))
        if known == len(self.types):
            self.types.append(types)
        return known

    def fix(self) -> None:
        """Say that the attributes known now are those of the rules."""
        self._fixed = len(self.attributes)

    def forget(self) -> None:
        """Forget the program's values, keep those of the rules."""
        for attribute in self.attributes[self._fixed :]:
            del self._numbers[attribute]
        del self.attributes[self._fixed :]
        self.types, self._kinds = [], {}

    def declarations(self) -> list[str]:
        """What egglog has to know before any rule: one command each."""
        commands = [line for line in _PRELUDE.splitlines() if line]
        for shape in self.shapes:
            commands += self._declared(shape)
        return commands

    def _declared(self, shape: Shape) -> Iterable[str]:
        name, (_, operands, names) = self.constructor(shape), shape
        classes = [f"?a{k}" for k in range(operands)]
        numbers = [f"?b{k}" for k in range(len(names))]
        sorts = " ".join(["T"] * operands + ["i64"] * len(names))
        call = " ".join([*(f"(V {a})" for a in classes), *numbers])
        row = " ".join(["i64"] * (1 + operands + len(names) + 3))
        yield f"(constructor {name} ({sorts}) T)"
        yield f"(function by-{name} ({sorts}) i64 :merge old)"
        yield f"(relation in-{name} ({row}))"
        yield (
            f"(rule ((in-{name} {' '.join(['?k', *classes, *numbers])} ?t ?l ?r))"
            f" ((let ?n ({name} {call})) (union (V ?k) ?n) (set (typ ?n) ?t) (set (level ?n) ?l)"
            f" (set (by-{name} {call}) ?r)) :ruleset in)"
        )
        if operands:
            light = " ".join(f"(weight {a})" for a in dict.fromkeys(classes))
            call = " ".join([*classes, *numbers])
            yield f"(rule ((= ?e ({name} {call})) {light}) ((weight ?e)) :ruleset analysis)"

    def row(
        self, head: Head, klass: int, operands: Sequence[int], types: Types, level: int, rule: int
    ) -> tuple[str, Row]:
        """An e-node as a row, and the relation it goes into."""
        rest = (self.type(types), level, rule)
        if head.op == PROJECT:
            index = head.attributes[0][1]
            assert isinstance(index, IntAttr)
            return "in-part", (klass, *operands, index.data, *rest)
        values = [self.attribute(value) for _, value in head.attributes]
        name = self.constructor(shape_of(head, len(operands)))
        return f"in-{name}", (klass, *operands, *values, *rest)
