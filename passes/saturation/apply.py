"""Right sides: what an instance of a rule adds to the e-graph, if its ops accept their operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp
from ..substitution.conditions import evaluate
from ..substitution.constants import constant_array
from ..substitution.rule import CONSTANTS, AttrValue, AttrVar, Node, Out, Size, Term, Var
from .egraph import EGraph, projection
from .match import Instance, bindings
from .ops import Head, OpTable, Types
from .patterns import attribute_of

MOST_CONSTANT = 1 << 16
"""Elements of the largest literal a rule may write into a program."""


class _Refused(Exception):
    """The right side is no program: an op does not take these operands."""


@dataclass
class _Planned:
    """An e-node to add; an operand below 0 is the complement of another planned one's place."""

    head: Head
    operands: tuple[int, ...]
    types: Types


@dataclass
class Builder:
    """Applies instances to a graph.

    Attributes:
        prefix: put before the op names of rules, as in "graph.".
    """

    graph: EGraph
    table: OpTable
    prefix: str

    def apply(self, instance: Instance) -> str:
        """Add the right side and join it with the left; why not, where it cannot be."""
        plan = _Plan(self, instance)
        try:
            roots = [plan.term(term) for term in instance.rule.right]
        except _Refused as reason:
            return str(reason)
        for root, place in zip(instance.roots, roots, strict=True):
            if plan.types(place) != self.graph.types[self.graph.find(root)]:
                return "the right side is of another type"
        made = self._commit(plan, instance)
        for root, place in zip(instance.roots, roots, strict=True):
            self.graph.union(root, made[~place] if place < 0 else place, instance.rule.name)
        return ""

    def _commit(self, plan: _Plan, instance: Instance) -> list[int]:
        graph, made = self.graph, list[int]()
        level = min(graph.level[graph.find(root)] for root in instance.roots)
        origin = graph.origins.get(graph.find(instance.roots[0]))
        for node in plan.nodes:
            operands = [made[~c] if c < 0 else c for c in node.operands]
            made.append(
                graph.add(
                    node.head,
                    operands,
                    node.types,
                    level=level,
                    weights=None if operands else True,
                    made_by=instance.rule.name,
                    origin=origin,
                )
            )
        return made


@dataclass
class _Plan:
    """The right side of one instance, before anything is added."""

    builder: Builder
    instance: Instance
    nodes: list[_Planned] = field(default_factory=list[_Planned])
    known: dict[Term, int] = field(default_factory=dict[Term, int])
    _bindings: dict[str, Any] | None = None

    def types(self, place: int) -> Types:
        graph = self.builder.graph
        return self.nodes[~place].types if place < 0 else graph.types[graph.find(place)]

    def term(self, term: Term) -> int:
        """The class of a term, or the complement of its place among the planned."""
        if term not in self.known:
            self.known[term] = self._term(term)
        return self.known[term]

    def _term(self, term: Term) -> int:
        match term:
            case Var():
                return self.builder.graph.find(self.instance.tensors[term.name])
            case Out():
                inner = self.term(term.node)
                types = self.types(inner)
                if term.index >= len(types):
                    raise _Refused(f"{term.node.op} has no result {term.index}")
                return self._node(projection(term.index), (inner,), (types[term.index],))
            case Node():
                if term.op in CONSTANTS:
                    return self._constant(term)
                return self._op(term)

    def _op(self, term: Node) -> int:
        table, op = self.builder.table, self.builder.prefix + term.op
        operands = tuple(map(self.term, term.operands))
        given = {n: attribute_of(table, op, n, self._value(v)) for n, v in term.attributes}
        attributes = table.complete(op, given)
        head = Head(op, attributes, table.results(op, dict(attributes)))
        kinds = [self.types(place) for place in operands]
        if any(len(kind) != 1 for kind in kinds):
            raise _Refused(f"{op} takes single results")
        sample = table.build(head, tuple(kind[0] for kind in kinds))
        if sample is None:
            raise _Refused(f"{op} does not take these operands")
        return self._node(head, operands, tuple(r.type for r in sample.results))

    def _node(self, head: Head, operands: tuple[int, ...], types: Types) -> int:
        if all(place >= 0 for place in operands):
            known = self.builder.graph.lookup(head, operands)
            if known is not None:
                return self.builder.graph.find(known.klass)
        self.nodes.append(_Planned(head, operands, types))
        return ~(len(self.nodes) - 1)

    def _constant(self, term: Node) -> int:
        attributes = {name: self._value(value) for name, value in term.attributes}
        numbers = [n for v in attributes.values() for n in (v if isinstance(v, tuple) else (v,))]
        if np.prod(numbers, dtype=np.float64) > MOST_CONSTANT:
            raise _Refused("the constant would be too large")
        first = next(iter(self.instance.tensors.values()))
        type_ = self.types(self.builder.graph.find(first))[0]
        assert isinstance(type_, TensorType)
        literal: Operation = ConstantOp(constant_array(term.op, attributes), type_.element_type)
        head = self.builder.table.head(literal)
        assert head is not None
        return self._node(head, (), tuple(r.type for r in literal.results))

    def _value(self, value: AttrValue) -> Any:
        """The Python value of an attribute under the instance's bindings."""
        if isinstance(value, tuple):
            return tuple(self._value(v) for v in value)
        if isinstance(value, AttrVar):
            return self.instance.attributes[value.name]
        return self._size(value.text) if isinstance(value, Size) else value

    def _size(self, text: str) -> Any:
        try:
            return evaluate(text, self._read())
        except UserError as error:
            raise _Refused(error.one_line()) from error

    def _read(self) -> Mapping[str, Any]:
        if self._bindings is None:
            graph = self.builder.graph
            tensors = {n: graph.find(c) for n, c in self.instance.tensors.items()}
            self._bindings = bindings(graph, tensors, self.instance.attributes)
        return self._bindings
