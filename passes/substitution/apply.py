"""The effect of a match: new nodes, replaced values, dead nodes, change in cost.

The new ops are built once for each distinct signature (op, attributes, operand types). The
dialect's own inference rejects invalid ones. The answer and its cost are memoised. An op that
exists already is reused. The ops of the left side stay if other ops use them. Otherwise they are
removed, with everything that only they used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import TensorType

from ...dialects.errors import UserError
from ...dialects.types import Array
from ..rules.constants import MAX_CONSTANT, is_writable, write_constant
from ..rules.graph_form import (
    Change,
    Entry,
    Graph,
    Tables,
    Value,
    is_paid,
    mark_of,
    node_of,
    result_of,
    value_of,
)
from ..rules.match import COMMUTATIVE, PREFIX, RuleMatch, bindings
from ..rules.op_table import has_integers
from ..rules.rule import CONSTANTS, Node, Out, Rule, Term, Var
from ..rules.terms import resolved_attributes

Given: TypeAlias = "tuple[tuple[str, Any], ...]"

_MASK = (1 << 64) - 1


class RefusedError(Exception):
    """A match that cannot be applied. The message gives the reason."""


@dataclass
class Applier:
    """Computes changes for the matches of one search."""

    tables: Tables
    rules: tuple[Rule, ...]
    _built: dict[tuple[object, ...], tuple[int, tuple[int, ...]] | None] = field(
        default_factory=dict[tuple[object, ...], "tuple[int, tuple[int, ...]] | None"]
    )

    def change(self, graph: Graph, match: RuleMatch) -> Change:
        """The change that the match's rule makes to the graph.

        Raises:
                RefusedError: the right side is not a valid program, or it changes nothing.
        """
        return _Change(self, graph, match).work_out()

    def closes_cycle(self, graph: Graph, match: RuleMatch, change: Change) -> bool:
        """Whether the change would make a value depend on itself.

        A rule with several outputs can do so where one is computed from another; any rule where
        what it would make is there already, computed from what it replaces.
        """
        read = {v: None for _, entry in change.made for v in entry.operands}
        read.update((new, None) for _, new in change.redirected)
        if len(match.roots) == 1:
            read = {v: None for v in read if v not in match.tensors}
        there = [v for v in read if node_of(v) in graph.nodes]
        replaced = {node_of(old) for old, _ in change.redirected}
        return any(graph.depends(v, root) for v in there for root in replaced)

    def built(
        self, op: str, attributes: tuple[tuple[str, Any], ...], types: tuple[int, ...]
    ) -> Any:
        """Head and result types of a new op; None if the op does not accept such operands."""
        key = (op, attributes, types)
        if key not in self._built:
            self._built[key] = self._build(op, attributes, types)
        return self._built[key]

    def _build(self, op: str, attributes: Given, types: tuple[int, ...]) -> Any:
        types_ = tuple(self.tables.types[t] for t in types)
        made = self.tables.ops.made_by_rule(PREFIX + op, dict(attributes), types_)
        return None if made is None else self.tables.numbers(*made)


@dataclass
class _Change:
    """The state while one match is turned into a change."""

    applier: Applier
    graph: Graph
    match: RuleMatch
    made: dict[int, Entry] = field(default_factory=dict[int, Entry])
    users: dict[Value, tuple[int, ...]] = field(default_factory=dict[Value, tuple[int, ...]])
    reads: set[int] = field(default_factory=set[int])
    dead: dict[int, None] = field(default_factory=dict[int, None])

    def __post_init__(self) -> None:
        self.rule = self.applier.rules[self.match.rule]
        self.tensors = dict(zip(self.rule.variables, self.match.tensors, strict=True))
        self.known = bindings(self.graph, self.tensors, dict(self.match.attributes))
        roots = [node_of(v) for v in self.match.roots]
        entries = [self.graph.nodes[n] for n in roots]
        self.origin = max(e.origin for e in entries)
        before = [rule for e in entries for rule in e.made_by]
        self.history = (*dict.fromkeys(before), self.rule.name)
        self.done: dict[Term, Value] = {}

    def work_out(self) -> Change:
        types = self.applier.tables.types
        if self.rule.divides and any(has_integers(types[self._type(v)]) for v in self.match.roots):
            raise RefusedError("it divides, and holds for floats only")
        roots = [self._term(term) for term in self.rule.right]
        redirected = list[tuple[Value, Value]]()
        for old, new in zip(self.match.roots, roots, strict=True):
            if old == new:
                continue
            if self._type(old) != self._type(new):
                raise RefusedError("the right side is of another type")
            if self._entry(new).weights != self._entry(old).weights:
                raise RefusedError("the right side depends on weights alone")
            redirected.append((old, new))
        if not redirected:
            raise RefusedError("it changes nothing")
        changed = self._redirect(redirected)
        self._kill([node_of(old) for old, _ in redirected])
        self.reads.update(self.match.nodes)
        made = tuple((n, e) for n, e in self.made.items() if n not in self.dead)
        dead = tuple(n for n in self.dead if n not in self.made)
        delta, mark = self._totals(made, dead, changed)
        return Change(made, tuple(redirected), dead, delta, mark, frozenset(self.reads))

    # --- the right side ---

    def _term(self, term: Term) -> Value:
        if isinstance(term, Var):
            return self.tensors[term.name]
        if term not in self.done:
            self.done[term] = self._written(term)
        return self.done[term]

    def _written(self, term: Node | Out) -> Value:
        if isinstance(term, Out):
            inner = node_of(self._term(term.node))
            if term.index >= len(self._entry(value_of(inner)).types):
                raise RefusedError(f"{term.node.op} has no result {term.index}")
            return value_of(inner, term.index)
        try:
            attributes = resolved_attributes(term.attributes, self.known)
        except UserError as error:
            raise RefusedError(error.one_line()) from error
        operands = tuple(map(self._term, term.operands))
        if term.op in CONSTANTS:
            return self._constant(term.op, dict(attributes))
        return self._made(term.op, dict(attributes), operands)

    def _made(self, op: str, attributes: Mapping[str, Any], operands: tuple[Value, ...]) -> Value:
        types = tuple(map(self._type, operands))
        found = self.applier.built(op, tuple(attributes.items()), types)
        if found is None:
            raise RefusedError(f"{op} does not take these operands")
        return value_of(self._node(found[0], operands, found[1]))

    def _constant(self, op: str, attributes: Mapping[str, Any]) -> Value:
        """The ops that compute a constant."""
        if not is_writable(op, attributes):
            raise RefusedError(f"there is no {op} of this size")
        value = write_constant(op, attributes, self._literal, self._made)
        self.applier.tables.constants[node_of(value)] = (op, attributes)
        return value

    def _literal(self, array: Array) -> Value:
        tables = self.applier.tables
        type_ = tables.types[self._type(self.match.tensors[0])]
        if array.size > MAX_CONSTANT or not isinstance(type_, TensorType):
            raise RefusedError("the constant has no literal")
        head, types = tables.numbers(*tables.ops.literal(array, type_.element_type))
        return value_of(self._node(head, (), types))

    def _node(self, head: int, operands: tuple[Value, ...], types: tuple[int, ...]) -> int:
        """An existing equal node, or a new one."""
        nodes, tables = self.graph.nodes, self.applier.tables
        same = [operands]
        if tables.heads[head].op in COMMUTATIVE:
            same.append(operands[::-1])
        for user in self.graph.users.get(operands[0], ()) if operands else ():
            if nodes[user].head == head and nodes[user].operands in same:
                self.reads.add(user)
                return user
        salt, number = 0, tables.number(head, operands)
        while number in nodes and nodes[number].operands != operands:
            salt -= 1
            number = tables.number(head, operands, salt)
        if number in nodes:
            self.reads.add(number)
        elif number not in self.made:
            weights = all(self._entry(v).weights for v in operands)
            self.made[number] = Entry(head, operands, types, weights, self.origin, self.history)
        return number

    def _entry(self, value: Value) -> Entry:
        number = node_of(value)
        return self.made[number] if number in self.made else self.graph.nodes[number]

    def _type(self, value: Value) -> int:
        return self._entry(value).types[result_of(value)]

    # --- what follows from it ---

    def _uses(self, value: Value) -> tuple[int, ...]:
        return self.users[value] if value in self.users else self.graph.users.get(value, ())

    def _redirect(self, redirected: list[tuple[Value, Value]]) -> dict[int, Entry]:
        """Redirect the users of old values to new ones. Returns the users after that."""
        changed = dict[int, Entry]()
        for old, new in redirected:
            moved = self._uses(old)
            for user in moved:
                entry = changed.get(user) or self.graph.nodes[user]
                operands = tuple(new if v == old else v for v in entry.operands)
                changed[user] = entry._replace(operands=operands)
            self.users[old] = ()
            self.users[new] = tuple(dict.fromkeys(self._uses(new) + moved))
        for number, entry in self.made.items():
            for value in entry.operands:
                self.users[value] = tuple(dict.fromkeys((*self._uses(value), number)))
        self.reads.update(changed)
        self.reads.update(n for v in self.match.tensors if (n := node_of(v)) in self.graph.nodes)
        return changed

    def _kill(self, waiting: list[int]) -> None:
        """Remove nodes without users, and then what only they used."""
        pinned = self.applier.tables.pinned
        while waiting:
            number = waiting.pop()
            entry = self._entry(value_of(number))
            self.reads.add(number)
            used = any(self._uses(value_of(number, k)) for k in range(len(entry.types)))
            if used or number in self.dead or number in pinned:
                continue
            self.dead[number] = None
            for value in entry.operands:
                self.users[value] = tuple(u for u in self._uses(value) if u != number)
                waiting.append(node_of(value))

    def _totals(
        self, made: tuple[tuple[int, Entry], ...], dead: tuple[int, ...], changed: dict[int, Entry]
    ) -> tuple[float, int]:
        """The seconds and the mark that the change adds."""
        tables, nodes = self.applier.tables, self.graph.nodes
        read = {node_of(v) for _, e in (*made, *changed.items()) for v in e.operands}
        after = {number: nodes[number] for number in read if number in nodes}
        after.update(made)
        delta, mark = 0.0, 0
        for number in dead:
            delta -= tables.seconds(nodes, nodes[number])
            mark -= mark_of(number, nodes[number])
        for number, entry in made:
            delta += tables.seconds(after, entry)
            mark += mark_of(number, entry)
        for number, entry in changed.items():
            if number not in self.dead:
                delta += tables.seconds(after, entry) - tables.seconds(nodes, nodes[number])
                mark += mark_of(number, entry) - mark_of(number, nodes[number])
        return delta + self._transposes(made, dead, changed), mark & _MASK

    def _transposes(
        self, made: tuple[tuple[int, Entry], ...], dead: tuple[int, ...], changed: dict[int, Entry]
    ) -> float:
        """The change in the cost of transposes, now that other ops read them."""
        tables, nodes = self.applier.tables, self.graph.nodes
        entries = [e for _, e in made] + list(changed.values()) + [nodes[n] for n in dead]
        entries += [nodes[n] for n in changed]
        read = dict.fromkeys(node_of(v) for e in entries for v in e.operands)
        near = dict.fromkeys((*read, *self.made, *dead))
        delta = 0.0
        for number in near:
            entry = self._entry(value_of(number))
            if not tables.swaps(entry):
                continue
            self.reads.add(number)
            if number in nodes:
                before = [nodes[u] for u in self.graph.users.get(value_of(number), ())]
                if is_paid(tables, entry, before):
                    delta -= tables.materialised(entry, self._entry(entry.operands[0]))
            if number not in self.dead:
                users = [self._entry(value_of(u)) for u in self._uses(value_of(number))]
                if is_paid(tables, entry, users):
                    delta += tables.materialised(entry, self._entry(entry.operands[0]))
        return delta
