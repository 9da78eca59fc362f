"""Answers to egglog's questions: whether a rule applies to types and attributes, and what it makes.

A question is a table's number with the numbers of types and attributes. Conditions, the attributes
that hold variables and the ops' own inference decide it, once for each rule of the table. Where the
rule applies the answer is a row of numbers; else there is none, and nothing is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Attribute

from ..rules.conditions import evaluate, holds
from ..rules.op_table import Head, value_of
from ..rules.rule import Rule
from .egraph import PROJECT
from .encoding import Row
from .left_sides import unify
from .right_sides import Inference, Made, RightSideRefused, shapes_in
from .rule_program import RuleOnTable, RuleProgram

Rows = dict[str, list[Row]]
"""Rows to give to egglog, by relation."""

_MAX_REASONS = 200


@dataclass(frozen=True)
class Instance:
    """What decides whether a rule holds where it was applied: types and attributes, no values.

    Attributes:
        types: of the tensor variables, by their names.
    """

    rule: Rule
    types: tuple[tuple[str, Attribute], ...]
    attributes: tuple[tuple[str, Any], ...]


@dataclass
class Answers:
    """All questions of one run, answered once.

    Attributes:
        next_class: the number of the next class that is made here (for constants).
        instances: those that rules apply to, in order.
        refused: how often a right side was not a program, by rule and first reason.
    """

    program: RuleProgram
    next_class: int
    instances: list[Instance] = field(default_factory=list[Instance])
    refused: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _known: dict[tuple[int, Row], Row | None] = field(
        default_factory=dict["tuple[int, Row]", "Row | None"]
    )
    _asked: set[Row] = field(default_factory=set[Row])
    _rows: Rows = field(default_factory=Rows)

    def rows(self, questions: list[Row]) -> Rows:
        """The rows for questions as egglog gives them, padded; only new ones are looked at."""
        for question in sorted(set(questions) - self._asked):
            self._asked.add(question)
            table = self.program.tables[question[0]]
            numbers = question[1 : 1 + len(table.question)]
            for member in self.program.of_table.get(table.number, ()):
                answer = self._answered(member, numbers)
                if answer is not None:
                    self._row(member.answers, (*numbers, *answer))
                    self.instances.append(self._instance(member, numbers))
        rows, self._rows = self._rows, Rows()
        return rows

    def fits(self, member: RuleOnTable, numbers: Row) -> bool:
        """Whether a rule applies to types and attributes, by their numbers."""
        return self._answered(member, numbers) is not None

    def new_class(self) -> int:
        """A number for a class that the program does not have."""
        self.next_class += 1
        return self.next_class - 1

    def _row(self, relation: str, row: Row) -> None:
        self._rows.setdefault(relation, []).append(row)

    def _answered(self, member: RuleOnTable, numbers: Row) -> Row | None:
        key = member.number, numbers
        if key not in self._known:
            try:
                self._known[key] = self._answer(member, numbers)
            except RightSideRefused as reason:
                self._known[key] = None
                self._refuse(member.rule.name, str(reason))
        return self._known[key]

    def _answer(self, member: RuleOnTable, numbers: Row) -> Row | None:
        """Types and attributes of what a rule makes. Raises RightSideRefused."""
        encoding, program = self.program.encoding, self.program
        types = [encoding.types[n] for n in numbers[: len(member.table.types)]]
        count = len(member.tensors)
        shapes = shapes_in(dict(zip(member.tensors, types, strict=False)))
        attributes = self._attributes(member, numbers, shapes)
        if attributes is None or not holds(member.rule.where, {**shapes, **attributes}):
            return None
        side = member.side
        found = Inference(side, program.table, program.prefix, types[:count], attributes)
        found.run(types[count:])
        answer = list[int]()
        for head, kind in zip(found.heads, found.found, strict=True):
            if isinstance(head, Head):
                answer.append(encoding.type(kind))
                if head.op != PROJECT:
                    answer += [encoding.attribute(value) for _, value in head.attributes]
            else:
                answer.append(self._constant(head, member.number))
        return tuple(answer)

    def _attributes(
        self, member: RuleOnTable, numbers: Row, shapes: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The values of attribute variables; None where an attribute differs from the pattern's."""
        start = len(member.table.types)
        values = [value_of(self.program.encoding.attributes[n]) for n in numbers[start:]]
        bound: dict[str, Any] = dict(zip(member.attributes, values, strict=False))

        def size(text: str, found: Mapping[str, Any]) -> Any:
            return evaluate(text, {**shapes, **found})

        rest = values[member.table.wholes :]
        for wanted, value in zip(member.checks, rest, strict=True):
            if not unify(wanted, value, bound, size):
                return None
        return bound

    def _constant(self, made: Sequence[Made], rule: int) -> int:
        """The class of a constant; its e-nodes become rows, like those of the program."""
        classes = list[int]()
        for head, operands, types in made:
            classes.append(self.new_class())
            at = [classes[k] for k in operands]
            self._row(*self.program.encoding.row(head, classes[-1], at, types, 0, rule))
            if not operands:
                self._row("light", (classes[-1],))
        return classes[-1]

    def _instance(self, member: RuleOnTable, numbers: Row) -> Instance:
        encoding = self.program.encoding
        types = [encoding.types[n] for n in numbers[: len(member.tensors)]]
        named = dict(zip(member.tensors, types, strict=True))
        attributes = self._attributes(member, numbers, shapes_in(named)) or {}
        first = tuple((name, found[0]) for name, found in named.items())
        return Instance(member.rule, first, tuple(sorted(attributes.items())))

    def _refuse(self, rule: str, reason: str) -> None:
        key = rule, reason
        if key in self.refused or len(self.refused) < _MAX_REASONS:
            self.refused[key] = self.refused.get(key, 0) + 1
