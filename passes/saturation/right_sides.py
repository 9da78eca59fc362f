"""Right sides: the e-nodes that a rule makes, and their types in one instance.

The rule alone decides the ops and their operands: that becomes an egglog action, once for each
rule. Attributes and types depend on the instance: the ops' own inference computes them here, once
for each combination of types and attribute values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ShapedType, TensorType
from xdsl.ir import Operation

from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp
from ...dialects.types import Array, named_dims
from ..rules.conditions import evaluate
from ..rules.constants import ConstantStep, constant_steps, is_writable
from ..rules.op_table import Head, OpTable, Types, attribute_of, has_integers
from ..rules.rule import CONSTANTS, AttrValue, AttrVar, Node, Out, Rule, Size, Term, Var
from .egraph import projection
from .encoding import Shape

MAX_CONSTANT = 1 << 16
"""Elements of the largest literal a rule may write into a program."""

Made: TypeAlias = "tuple[Head, tuple[int, ...], Types]"
"""An e-node of a constant: head, numbers of the e-nodes before it, types."""


class RightSideRefused(Exception):
    """The right side is not a program: an op does not take these operands."""


@dataclass(frozen=True)
class Step:
    """One e-node of a right side.

    Attributes:
        operands: their slots; tensor variables have the first slots, steps the others.
        shape: the kind of e-node; None for one result of several, and for a constant.
    """

    term: Node | Out
    operands: tuple[int, ...]
    shape: Shape | None


@dataclass(frozen=True)
class RightSide:
    """The e-nodes of a right side, operands first.

    Attributes:
        slots: the slot of each term; `roots` those of the outputs.
    """

    rule: Rule
    tensors: tuple[str, ...]
    steps: tuple[Step, ...]
    roots: tuple[int, ...]
    slots: Mapping[Term, int]


def right_side_of(rule: Rule, tensors: Sequence[str], table: OpTable, prefix: str) -> RightSide:
    """Split a right side into steps.

    Args:
        tensors: the rule's tensor variables in the order of their slots.
    """
    slots: dict[Term, int] = {Var(name): slot for slot, name in enumerate(tensors)}
    steps = list[Step]()

    def slot(term: Term) -> int:
        if term not in slots:
            steps.append(step(term))
            slots[term] = len(tensors) + len(steps) - 1
        return slots[term]

    def step(term: Term) -> Step:
        match term:
            case Out():
                return Step(term, (slot(term.node),), None)
            case Node() if term.op in CONSTANTS:
                return Step(term, (), None)
            case Node():
                operands = tuple(map(slot, term.operands))
                names = {*dict(term.attributes), *dict(table.complete(prefix + term.op, {}))}
                return Step(term, operands, (prefix + term.op, len(operands), tuple(sorted(names))))
            case Var():
                raise AssertionError(f"the left side binds {term.name}")

    roots = tuple(map(slot, rule.right))
    return RightSide(rule, tuple(tensors), tuple(steps), roots, slots)


@dataclass
class Inference:
    """Types and attributes of the e-nodes of one right side in one instance.

    Attributes:
        types: of the tensor variables.
        heads: of each step; a constant has those of all e-nodes that compute it, itself last.
    """

    side: RightSide
    table: OpTable
    prefix: str
    types: Sequence[Types]
    attributes: Mapping[str, Any]
    heads: list[Head | tuple[Made, ...]] = field(default_factory=list["Head | tuple[Made, ...]"])
    found: list[Types] = field(default_factory=list[Types])
    _known: dict[str, Any] = field(default_factory=dict[str, Any])

    def run(self, roots: Sequence[Types]) -> None:
        """Fill `heads` and `found`, the types of each step.

        Args:
            roots: the types of the left side's outputs.

        Raises:
            RightSideRefused: an op does not take its operands, or the result is of another type.
        """
        if self.side.rule.divides and any(has_integers(t) for types in self.types for t in types):
            raise RightSideRefused("it divides, and holds for floats only")
        named = dict(zip(self.side.tensors, self.types, strict=True))
        self._known = {**self.attributes, **shapes_in(named)}
        for step in self.side.steps:
            head, types = self._step(step)
            self.heads.append(head)
            self.found.append(types)
        if tuple(map(self._types, self.side.roots)) != tuple(roots):
            raise RightSideRefused("the right side is of another type")

    def _types(self, slot: int) -> Types:
        count = len(self.types)
        return self.types[slot] if slot < count else self.found[slot - count]

    def _step(self, step: Step) -> tuple[Head | tuple[Made, ...], Types]:
        term = step.term
        if isinstance(term, Out):
            types = self._types(step.operands[0])
            if term.index >= len(types):
                raise RightSideRefused(f"{term.node.op} has no result {term.index}")
            return projection(term.index), (types[term.index],)
        values = {name: self._value(value) for name, value in term.attributes}
        if term.op in CONSTANTS:
            made = self._constant(term, values)
            return made, made[-1][2]
        return self._op(term.op, values, tuple(map(self._types, step.operands)))

    def _op(
        self, name: str, values: Mapping[str, Any], operands: Sequence[Types]
    ) -> tuple[Head, Types]:
        table, op = self.table, self.prefix + name
        try:
            given = {n: attribute_of(table, op, n, v) for n, v in values.items()}
        except ValueError as error:  # a rule that applies to its own result counts without end
            raise RightSideRefused(f"{op} has a number past 64 bits") from error
        attributes = table.complete(op, given)
        head = Head(op, attributes, table.results(op, dict(attributes)))
        if any(len(types) != 1 for types in operands):
            raise RightSideRefused(f"{op} takes single results")
        sample = table.by_rule(head, tuple(types[0] for types in operands))
        if sample is None:
            raise RightSideRefused(f"{op} does not take these operands")
        return head, tuple(r.type for r in sample.results)

    def _constant(self, term: Node, values: Mapping[str, Any]) -> tuple[Made, ...]:
        """A rule's constant, as ops that compute it: so its literals are exact and small."""
        if not is_writable(term.op, values, MAX_CONSTANT):
            raise RightSideRefused("the constant would be too large, or there is none")
        made = list[Made]()
        for step in constant_steps(term.op, values):
            made.append(self._constant_step(step, made))
        return tuple(made)

    def _constant_step(self, step: Array | ConstantStep, made: Sequence[Made]) -> Made:
        if isinstance(step, ConstantStep):
            operands = [made[k][2] for k in step.operands]
            head, types = self._op(step.op, dict(step.attributes), operands)
            return head, step.operands, types
        type_ = self.types[0][0]
        assert isinstance(type_, TensorType)
        literal: Operation = ConstantOp(step, type_.element_type)
        head = self.table.head(literal)
        assert head is not None
        return head, (), tuple(r.type for r in literal.results)

    def _value(self, value: AttrValue) -> Any:
        """The Python value of an attribute under the instance's bindings."""
        if isinstance(value, tuple):
            return tuple(self._value(v) for v in value)
        if isinstance(value, AttrVar):
            return self.attributes[value.name]
        return self._size(value.text) if isinstance(value, Size) else value

    def _size(self, text: str) -> Any:
        try:
            return evaluate(text, self._known)
        except UserError as error:
            raise RightSideRefused(error.one_line()) from error


def shapes_in(types: Mapping[str, Types]) -> dict[str, Any]:
    """The shapes of variables that are single tensors."""
    return {
        name: named_dims(found[0])
        for name, found in types.items()
        if len(found) == 1 and isinstance(found[0], ShapedType)
    }
