"""Find the matches of rules: walk along users, and only near what changed.

A rule with one output is looked for from its root op. One with several is looked for from each of
its outputs; the others are found by walking from the variables that are bound already to their
users, never by trying all pairs. Both orders of the operands of `add`, `mul`, `min` and `max` are
tried, so no rule needs to say that they commute.

Matches whose outputs depend on weights alone are skipped, because they have no cost anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp
from .conditions import evaluate, holds
from .constants import constant_array
from .graph_form import Graph, Tables, Value, node_of, result_of, value_of
from .rule import CONSTANTS, AttrVar, Node, Out, Rule, Size, Term, Var, means_two, subterms
from .terms import resolved, root_node, without_names

COMMUTATIVE = ("graph.add", "graph.mul", "graph.min", "graph.max")
PREFIX = "graph."


class RuleMatch(NamedTuple):
    """One match of a rule's left side.

    Attributes:
        rule: its number in the rule list.
        tensors: values of the rule's variables, in `Rule.variables`' order.
        attributes: names and values of the attribute variables.
        roots: the values of the left terms.
        nodes: the ops that were matched.
    """

    rule: int
    tensors: tuple[Value, ...]
    attributes: tuple[tuple[str, Any], ...]
    roots: tuple[Value, ...]
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class _Bound:
    """A partial match. `later` holds attributes and constants to check at the end."""

    tensors: dict[str, Value] = field(default_factory=dict[str, Value])
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    nodes: tuple[int, ...] = ()
    later: tuple[tuple[Any, Any], ...] = ()


class _Step(NamedTuple):
    """A step from an operand to the op that uses it."""

    op: str
    position: int
    result: int


@dataclass(frozen=True)
class LeftSide:
    """A rule's left side, prepared for matching."""

    number: int
    rule: Rule

    @cached_property
    def paths(self) -> tuple[dict[str, tuple[_Step, ...]], ...]:
        """For each term and each of its variables: the steps from the variable to the term."""
        return tuple(dict(_paths(term, 0)) for term in self.rule.left)

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The op of each term."""
        return tuple(PREFIX + root_node(term).op for term in self.rule.left)

    @cached_property
    def operands(self) -> tuple[tuple[str, ...], ...]:
        """For each term the ops of its operands, empty where any may stand."""
        return tuple(
            tuple(_op_of(operand) for operand in root_node(term).operands)
            for term in self.rule.left
        )

    @cached_property
    def symmetric(self) -> bool:
        """Whether swapping its two terms gives the same rule. Then one order is enough."""
        left = self.rule.left
        return len(left) == 2 and without_names(left) == without_names((left[1], left[0]))


def _op_of(term: Term) -> str:
    node = term.node if isinstance(term, Out) else term
    return PREFIX + node.op if isinstance(node, Node) and node.op not in CONSTANTS else ""


def _paths(term: Term, result: int) -> Iterator[tuple[str, tuple[_Step, ...]]]:
    match term:
        case Var():
            yield term.name, ()
        case Out():
            yield from _paths(term.node, term.index)
        case Node():
            for position, operand in enumerate(term.operands):
                for name, steps in _paths(operand, 0):
                    yield name, (*steps, _Step(PREFIX + term.op, position, result))


def unusable(rule: Rule, tables: Tables) -> str:
    """The reason why a rule cannot take part in a search; empty if it can."""
    if rule.proof == "refuted":
        return "it is refuted"
    if any(isinstance(t, Var) or root_node(t).op in CONSTANTS for t in rule.left):
        return "its left side is not an op"
    for term in (*subterms(rule.left), *subterms(rule.right)):
        if isinstance(term, Node) and term.op not in CONSTANTS:
            try:
                tables.ops.complete(PREFIX + term.op, {})
            except UserError as error:
                return error.one_line()
    seen = set(LeftSide(0, rule).paths[0])
    for paths in LeftSide(0, rule).paths[1:]:
        if not seen & set(paths):
            return "its outputs share no variable"
        seen |= set(paths)
    return ""


@dataclass
class GraphMatcher:
    """Finds the matches of rules in graphs of one search.

    Attributes:
        tick: called at every node looked at; what it raises ends the round.
    """

    tables: Tables  # shared by all graphs
    rules: Sequence[Rule]
    tick: Callable[[], None] = lambda: None
    lefts: dict[str, list[tuple[LeftSide, int]]] = field(init=False)
    reach: int = field(init=False)  # most ops from a root to a leaf
    _fits: dict[tuple[Node, int], Any] = field(default_factory=dict[tuple[Node, int], Any])

    def __post_init__(self) -> None:
        self.lefts, self.reach = {}, 1
        for number, rule in enumerate(self.rules):
            left = LeftSide(number, rule)
            for k, op in enumerate(left.roots):
                self.lefts.setdefault(op, []).append((left, k))
            steps = [len(s) for paths in left.paths for s in paths.values()]
            self.reach = max(self.reach, *steps)

    def everywhere(self, graph: Graph) -> list[RuleMatch]:
        """All matches in a graph."""
        found = dict[RuleMatch, None]()
        for op, numbers in graph.by_op().items():
            for left, k in self.lefts.get(op, ()):
                if k == 0:
                    for number in numbers:
                        found.update(dict.fromkeys(self._from(graph, left, 0, number)))
        return list(found)

    def near(self, graph: Graph, changed: Iterable[int]) -> list[RuleMatch]:
        """The matches that contain a node of `changed`."""
        centre = [n for n in dict.fromkeys(changed) if n in graph.nodes]
        roots, layer = dict.fromkeys(centre), centre
        for _ in range(self.reach - 1):
            layer = list(dict.fromkeys(u for n in layer for u in graph.uses(n) if u not in roots))
            roots.update(dict.fromkeys(layer))
        inside, found = set(centre), dict[RuleMatch, None]()
        for number in roots:
            op = self.tables.heads[graph.nodes[number].head].op
            for left, k in self.lefts.get(op, ()):
                for match in self._from(graph, left, k, number):
                    if not inside.isdisjoint(match.nodes):
                        found[match] = None
        return list(found)

    def _from(self, graph: Graph, left: LeftSide, first: int, number: int) -> Iterator[RuleMatch]:
        """The matches in which term `first` is a result of this node."""
        if graph.nodes[number].weights or not self._may_fit(graph, left, first, number):
            return
        terms = left.rule.left
        result = terms[first].index if isinstance(terms[first], Out) else 0  # pyright: ignore
        start = value_of(number, result)
        others = [k for k in range(len(terms)) if k != first]
        for bound in self._term(graph, terms[first], start, _Bound()):
            for whole, roots in self._join(graph, left, others, bound, {first: start}):
                yield from self._finish(graph, left, whole, roots)

    def _may_fit(self, graph: Graph, left: LeftSide, first: int, number: int) -> bool:
        """Whether the ops of a node's operands are those that a term asks for, in any order."""
        wanted = left.operands[first]
        if not any(wanted):
            return True
        nodes, heads = graph.nodes, self.tables.heads
        there = [heads[nodes[node_of(v)].head].op for v in nodes[number].operands]
        if len(there) != len(wanted):
            return False
        if left.roots[first] in COMMUTATIVE:
            return all(not op or op in there for op in wanted)
        return all(not op or op == found for op, found in zip(wanted, there, strict=True))

    def _join(
        self,
        graph: Graph,
        left: LeftSide,
        others: list[int],
        bound: _Bound,
        roots: dict[int, Value],
    ) -> Iterator[tuple[_Bound, dict[int, Value]]]:
        """Match the other terms at values that share a variable with what is bound."""
        ready = [k for k in others if any(name in bound.tensors for name in left.paths[k])]
        if not ready:
            if not others:
                yield bound, roots
            return
        k = ready[0]
        name, steps = next((n, s) for n, s in left.paths[k].items() if n in bound.tensors)
        rest = [other for other in others if other != k]
        for value in _climb(graph, bound.tensors[name], steps):
            if value not in roots.values():
                for more in self._term(graph, left.rule.left[k], value, bound):
                    yield from self._join(graph, left, rest, more, {**roots, k: value})

    def _finish(
        self, graph: Graph, left: LeftSide, bound: _Bound, roots: dict[int, Value]
    ) -> Iterator[RuleMatch]:
        """The match, if the conditions and postponed checks hold."""
        ordered = tuple(roots[k] for k in range(len(left.rule.left)))
        if left.symmetric and ordered[0] > ordered[1]:
            return
        if all(graph.nodes[node_of(v)].weights for v in ordered):
            return
        known = bindings(graph, bound.tensors, bound.attributes)
        if not all(self._holds_later(graph, want, found, known) for want, found in bound.later):
            return
        if holds(left.rule.where, known):
            tensors = tuple(bound.tensors[name] for name in left.rule.variables)
            attributes = tuple(sorted(bound.attributes.items()))
            nodes = tuple(dict.fromkeys(bound.nodes))
            yield RuleMatch(left.number, tensors, attributes, ordered, nodes)

    def _term(self, graph: Graph, term: Term, value: Value, bound: _Bound) -> Iterator[_Bound]:
        """Every match of a term with a value."""
        match term:
            case Var():
                known = bound.tensors.get(term.name)
                if known is None:
                    tensors = {**bound.tensors, term.name: value}
                    yield _Bound(tensors, bound.attributes, bound.nodes, bound.later)
                elif known == value:
                    yield bound
            case Out():
                if result_of(value) == term.index:
                    yield from self._node(graph, term.node, value, bound)
            case Node():
                if term.op in CONSTANTS:
                    yield from self._constant(graph, term, value, bound)
                elif result_of(value) == 0:
                    yield from self._node(graph, term, value, bound)

    def _constant(self, graph: Graph, term: Node, value: Value, bound: _Bound) -> Iterator[_Bound]:
        """Bind the attributes of a constant, which its shape gives; its value is checked later.

        One that a rule wrote is known.
        """
        written = self.tables.constants.get(node_of(value))
        if written is not None:
            if written[0] == term.op:
                yield from self._written(term, written[1], bound)
            return
        shape = graph.tables.shape(graph.type_of(value))
        found, later = list[Any](), list[Any]()
        first = shape[0] if shape else 0
        of_shape = {"shape": shape, "size": first, "channels": first, "kernel": shape[2:]}
        if self.tables.heads[graph.nodes[node_of(value)].head].op != ConstantOp.name or not all(
            name in of_shape and _unify(want, of_shape[name], found, later)
            for name, want in term.attributes
        ):
            return
        attributes = dict(bound.attributes)
        if all(attributes.setdefault(name, v) == v for name, v in found):
            later = (*bound.later, *later, (term, value))
            yield _Bound(bound.tensors, attributes, bound.nodes, later)

    def _written(self, term: Node, known: Mapping[str, Any], bound: _Bound) -> Iterator[_Bound]:
        found, later, attributes = list[Any](), list[Any](), dict(bound.attributes)
        if not all(_unify(want, known[name], found, later) for name, want in term.attributes):
            return
        if all(attributes.setdefault(name, v) == v for name, v in found):
            yield _Bound(bound.tensors, attributes, bound.nodes, (*bound.later, *later))

    def _node(self, graph: Graph, term: Node, value: Value, bound: _Bound) -> Iterator[_Bound]:
        self.tick()
        number = node_of(value)
        entry = graph.nodes[number]
        fit = self._fit(term, entry.head)
        if fit is None or len(entry.operands) != len(term.operands):
            return
        attributes = dict(bound.attributes)
        for name, found in fit[0]:
            if attributes.setdefault(name, found) != found:
                return
        start = _Bound(bound.tensors, attributes, (*bound.nodes, number), bound.later + fit[1])
        yield from self._operands(graph, term, entry.operands, start)
        turned = entry.operands[::-1]
        if PREFIX + term.op in COMMUTATIVE and turned != entry.operands:
            yield from self._operands(graph, term, turned, start)

    def _operands(
        self, graph: Graph, term: Node, values: tuple[Value, ...], bound: _Bound
    ) -> Iterator[_Bound]:
        ways = [bound]
        for operand, value in zip(term.operands, values, strict=True):
            ways = [more for way in ways for more in self._term(graph, operand, value, way)]
        yield from ways

    def _fit(self, term: Node, head: int) -> Any:
        """What a head binds of a node's attributes and what remains to check; None if no match."""
        key = (term, head)
        if key not in self._fits:
            self._fits[key] = self._fitted(term, head)
        return self._fits[key]

    def _fitted(self, term: Node, head: int) -> Any:
        if self.tables.heads[head].op != PREFIX + term.op or not self.tables.matchable(head):
            return None
        given, bound, later = dict(term.attributes), list[Any](), list[Any]()
        defaults = dict(self.tables.ops.complete(PREFIX + term.op, {}))
        plain = dict(self.tables.heads[head].attributes)
        for name, found in self.tables.attributes(head).items():
            if name not in given:
                if plain[name] != defaults.get(name):
                    return None
            elif not _unify(given.pop(name), found, bound, later) or (
                means_two(term, name) and len(found) != 2
            ):
                return None
        return None if given else (tuple(bound), tuple(later))

    def _holds_later(self, graph: Graph, want: Any, found: Any, known: dict[str, Any]) -> bool:
        try:
            if isinstance(want, Size):
                return evaluate(want.text, known) == found
            return self._is_constant(graph, want, found, known)
        except UserError:
            return False

    def _is_constant(self, graph: Graph, want: Node, value: Value, known: dict[str, Any]) -> bool:
        """Whether a value is a literal with the data of a constant."""
        entry = graph.nodes[node_of(value)]
        head = self.tables.heads[entry.head]
        if head.op != ConstantOp.name:
            return False
        attributes = {name: resolved(v, known) for name, v in want.attributes}
        array = constant_array(want.op, attributes)
        data: Any = dict(head.attributes)["data"]
        if array.shape != self.tables.shape(entry.types[0]):
            return False
        return np.array_equal(np.asarray(data.get_values()).reshape(array.shape), array)


def bindings(graph: Graph, tensors: dict[str, Value], attributes: dict[str, Any]) -> dict[str, Any]:
    """The values that conditions read: shapes of tensor variables, and attribute variables."""
    shape = graph.tables.shape
    return {**{name: shape(graph.type_of(v)) for name, v in tensors.items()}, **attributes}


def _unify(want: Any, found: Any, bound: list[Any], later: list[Any]) -> bool:
    if isinstance(want, tuple):
        parts: tuple[Any, ...] = want
        if not isinstance(found, tuple) or len(parts) != len(found):  # pyright: ignore
            return False
        return all(_unify(w, f, bound, later) for w, f in zip(parts, found, strict=True))  # pyright: ignore
    if isinstance(want, AttrVar):
        bound.append((want.name, found))
        return True
    if isinstance(want, Size):
        later.append((want, found))
        return True
    return want == found


def _climb(graph: Graph, value: Value, steps: Sequence[_Step]) -> list[Value]:
    """The values reached from a value along the steps."""
    here = [value]
    for step in steps:
        following = list[Value]()
        for below in here:
            for user in graph.users.get(below, ()):
                entry = graph.nodes[user]
                at = entry.operands[step.position : step.position + 1] == (below,)
                if graph.tables.heads[entry.head].op == step.op and (at or step.op in COMMUTATIVE):
                    following.append(value_of(user, step.result))
        here = list(dict.fromkeys(following))
    return here
