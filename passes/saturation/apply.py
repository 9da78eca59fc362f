"""Right sides: what an instance of a rule adds to the e-graph, if its ops accept their operands.

That depends on the types of its variables and on attribute values alone, so it is worked out once
for each of these (a build) and then only written down, class by class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp
from ...dialects.types import Array
from ..rules.conditions import evaluate
from ..rules.constants import ConstantStep, constant_steps, is_writable
from ..rules.op_table import Head, OpTable, Types, attribute_of
from ..rules.rule import CONSTANTS, AttrValue, AttrVar, Node, Out, Size, Term, Var
from .egraph import EGraph, projection
from .match import Instance, shapes_in

MOST_CONSTANT = 1 << 16
"""Elements of the largest literal a rule may write into a program."""


class _Refused(Exception):
    """The right side is no program: an op does not take these operands."""


@dataclass(frozen=True)
class _Build:
    """E-nodes to add one after the other; operands are places: variables first, then e-nodes."""

    nodes: tuple[tuple[Head, tuple[int, ...], Types], ...]
    roots: tuple[int, ...]
    places: Mapping[Term, int]


_Key: TypeAlias = "tuple[str, tuple[int, ...], tuple[int, ...], tuple[tuple[str, Any], ...]]"


@dataclass
class InstanceApplier:
    """Applies instances to a graph.

    Attributes:
        prefix: put before the op names of rules, as in "graph.".
        made: the classes of the last instance's right side, by term; whoever applies empties it
            before, for an instance may be refused.
    """

    graph: EGraph
    table: OpTable
    prefix: str
    made: dict[Term, int] = field(default_factory=dict[Term, int])
    _builds: dict[_Key, _Build | str] = field(default_factory=dict[_Key, "_Build | str"])

    def apply(self, instance: Instance) -> str:
        """Add the right side and join it with the left; why not, where it cannot be."""
        graph = self.graph
        classes = [graph.find(c) for c in instance.tensors.values()]
        build = self._build(instance, classes)
        if isinstance(build, str):
            return build
        rule = instance.rule.name
        level = min(graph.level[graph.find(root)] for root in instance.roots)
        origin = graph.origins.get(graph.find(instance.roots[0]))
        for head, operands, types in build.nodes:
            made = graph.add(
                head,
                [classes[place] for place in operands],
                types,
                level=level,
                weights=None if operands else True,
                made_by=rule,
                origin=origin,
            )
            classes.append(made)
        for root, place in zip(instance.roots, build.roots, strict=True):
            graph.union(root, classes[place], rule)
        self.made = {term: classes[place] for term, place in build.places.items()}
        return ""

    def fits(self, instance: Instance) -> bool:
        """Whether an instance can be applied."""
        classes = [self.graph.find(c) for c in instance.tensors.values()]
        return not isinstance(self._build(instance, classes), str)

    def _build(self, instance: Instance, classes: list[int]) -> _Build | str:
        kind, find = self.graph.kind, self.graph.find
        kinds = tuple([kind[c] for c in classes])
        roots = tuple([kind[find(c)] for c in instance.roots])
        key = instance.rule.name, kinds, roots, tuple(sorted(instance.attributes.items()))
        if key not in self._builds:
            types = self.graph.types
            plan = _Plan(self, instance, [types[c] for c in classes])
            try:
                self._builds[key] = plan.build([types[find(c)] for c in instance.roots])
            except _Refused as reason:
                self._builds[key] = str(reason)
        return self._builds[key]


@dataclass
class _Plan:
    """Works out the right side of one instance."""

    builder: InstanceApplier
    instance: Instance
    types: Sequence[Types]
    known: dict[Term, int] = field(default_factory=dict[Term, int])
    nodes: list[tuple[Head, tuple[int, ...], Types]] = field(
        default_factory=list["tuple[Head, tuple[int, ...], Types]"]
    )
    _shapes: dict[str, Any] = field(default_factory=dict[str, Any])

    def build(self, roots: Sequence[Types]) -> _Build:
        """The e-nodes of all terms. Raises _Refused."""
        named = dict(zip(self.instance.tensors, self.types, strict=True))
        self.known = {Var(name): place for place, name in enumerate(named)}
        self._shapes = {**self.instance.attributes, **shapes_in(named)}
        places = tuple(map(self._term, self.instance.rule.right))
        if tuple(map(self._types, places)) != tuple(roots):
            raise _Refused("the right side is of another type")
        return _Build(tuple(self.nodes), places, self.known)

    def _types(self, place: int) -> Types:
        count = len(self.types)
        return self.types[place] if place < count else self.nodes[place - count][2]

    def _term(self, term: Term) -> int:
        """The place of a term."""
        if term not in self.known:
            self.known[term] = self._add(*self._node(term))
        return self.known[term]

    def _add(self, head: Head, operands: tuple[int, ...], types: Types) -> int:
        self.nodes.append((head, operands, types))
        return len(self.types) + len(self.nodes) - 1

    def _node(self, term: Term) -> tuple[Head, tuple[int, ...], Types]:
        match term:
            case Out():
                inner = self._term(term.node)
                types = self._types(inner)
                if term.index >= len(types):
                    raise _Refused(f"{term.node.op} has no result {term.index}")
                return projection(term.index), (inner,), (types[term.index],)
            case Node() if term.op in CONSTANTS:
                return self._constant(term)
            case Node():
                return self._op(term)
            case Var():
                raise AssertionError(f"the left side binds {term.name}")

    def _op(self, term: Node) -> tuple[Head, tuple[int, ...], Types]:
        operands = tuple(map(self._term, term.operands))
        return self._made(term.op, {n: self._value(v) for n, v in term.attributes}, operands)

    def _made(
        self, name: str, values: Mapping[str, Any], operands: tuple[int, ...]
    ) -> tuple[Head, tuple[int, ...], Types]:
        table, op = self.builder.table, self.builder.prefix + name
        given = {n: attribute_of(table, op, n, v) for n, v in values.items()}
        attributes = table.complete(op, given)
        head = Head(op, attributes, table.results(op, dict(attributes)))
        kinds = [self._types(place) for place in operands]
        if any(len(kind) != 1 for kind in kinds):
            raise _Refused(f"{op} takes single results")
        sample = table.by_rule(head, tuple(kind[0] for kind in kinds))
        if sample is None:
            raise _Refused(f"{op} does not take these operands")
        return head, operands, tuple(r.type for r in sample.results)

    def _constant(self, term: Node) -> tuple[Head, tuple[int, ...], Types]:
        """A rule's constant, as ops that compute it: so every literal is exact, and small."""
        values = {name: self._value(value) for name, value in term.attributes}
        if not is_writable(term.op, values, MOST_CONSTANT):
            raise _Refused("the constant would be too large, or there is none")
        *before, last = constant_steps(term.op, values)
        places = list[int]()
        for step in before:
            places.append(self._add(*self._step(step, places)))
        return self._step(last, places)

    def _step(
        self, step: Array | ConstantStep, places: Sequence[int]
    ) -> tuple[Head, tuple[int, ...], Types]:
        if isinstance(step, ConstantStep):
            operands = tuple(places[k] for k in step.operands)
            return self._made(step.op, dict(step.attributes), operands)
        type_ = self.types[0][0]
        assert isinstance(type_, TensorType)
        literal: Operation = ConstantOp(step, type_.element_type)
        head = self.builder.table.head(literal)
        assert head is not None
        return head, (), tuple(r.type for r in literal.results)

    def _value(self, value: AttrValue) -> Any:
        """The Python value of an attribute under the instance's bindings."""
        if isinstance(value, tuple):
            return tuple(self._value(v) for v in value)
        if isinstance(value, AttrVar):
            return self.instance.attributes[value.name]
        return self._size(value.text) if isinstance(value, Size) else value

    def _size(self, text: str) -> Any:
        try:
            return evaluate(text, self._shapes)
        except UserError as error:
            raise _Refused(error.one_line()) from error
