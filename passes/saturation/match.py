"""From matches of patterns to instances of rules: bindings, joins of several outputs, cycle guards.

All here is generators that ask the watch at every turn, so limits hold in the middle of the largest
join. Guards that keep cycles out: merging two ops makes both depend on the operands of both, a
cycle where one feeds the other. Two variants of a merge cannot close one: what is joined are
weights alone, or both ops stand at one level of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from xdsl.dialects.builtin import ShapedType

from ..rules.conditions import evaluate, holds
from ..rules.op_table import Types, value_of
from ..rules.rule import Node, Rule, Term, Var, subterms
from .egraph import EGraph
from .encode import CHAINED
from .engine import Engine, Relation, Row
from .folds import Again, again, is_symmetric
from .patterns import LeftPatterns, unify

Cycles: TypeAlias = Literal["guarded", "vanilla", "descendants", "in-ilp"]
CYCLES: tuple[Cycles, ...] = ("guarded", "vanilla", "descendants", "in-ilp")


@dataclass(frozen=True)
class Instance:
    """A place where a rule applies: classes of its outputs and variables, attribute values."""

    rule: Rule
    roots: tuple[int, ...]
    tensors: Mapping[str, int]
    attributes: Mapping[str, Any]


@dataclass
class _Bound:
    """A match of one pattern, by the rule's own names."""

    root: int
    tensors: dict[str, int]
    attributes: dict[str, Any]


_Key: TypeAlias = "tuple[str, tuple[int, ...], tuple[int, ...], tuple[object, ...]]"


@dataclass
class EGraphMatcher:
    """Instances of rules on the graph as it is; each is given once, whatever classes are joined.

    Attributes:
        tick: called for each row and combination; may raise.
        made: the classes of the right side of the instance given last, by term; empty where it was
            not applied.
        fits: whether the ops of an instance's right side take their operands.
    """

    engine: Engine
    graph: EGraph
    cycles: Cycles
    tick: Callable[[], None] = lambda: None
    made: Callable[[], Mapping[Term, int]] = dict[Term, int]
    fits: Callable[[Instance], bool] = lambda instance: True
    _seen: dict[str, set[Row]] = field(default_factory=dict[str, set[Row]])
    _done: set[_Key] = field(default_factory=set[_Key])
    _folded: dict[str, list[set[int]]] = field(default_factory=dict[str, list[set[int]]])

    def instances(
        self, lefts: Iterable[LeftPatterns], rows: Mapping[str, list[Row]]
    ) -> Iterator[Instance]:
        """Every new instance of some rules, in a fixed order.

        Args:
            rows: all matches of all their patterns, those of earlier rounds too.
        """
        fresh = {name: self._fresh(name, found) for name, found in rows.items()}
        find = self.graph.find
        self._done = {
            (name, tuple(map(find, roots)), tuple(map(find, classes)), values)
            for name, roots, classes, values in self._done
        }
        for left in lefts:
            if len(left.patterns) == 1:
                yield from self._instances(left, ((b,) for b in self._bound(left, 0, fresh)))
            else:
                bound = [list(self._bound(left, k, rows)) for k in range(len(left.patterns))]
                repeated = again(left)
                if repeated is not None and left.rule.name not in self._folded:
                    groups = self._groups(left, bound[0])
                    self._folded[left.rule.name] = [set(group) for group in groups]
                    for group in groups:
                        yield from self._folds(left, repeated, list(group.values()))
                yield from self._instances(left, self._new(left, self._joined(left, bound)))

    def folds(
        self, lefts: Iterable[LeftPatterns], rows: Mapping[str, list[Row]], program: int
    ) -> Iterator[Instance]:
        """Merges of whole groups that no earlier fold had.

        Of a group only what something outside of it reads is merged: all of the group is there at
        once, so the others are not needed on the way.

        Args:
            rows: all matches of the rules' patterns.
            program: classes below are the program's own; groups are of these.
        """
        readers, find = self._readers(program), self.graph.find
        for left in lefts:
            repeated = again(left)
            if repeated is None:
                continue
            known = [set(map(find, roots)) for roots in self._folded.get(left.rule.name, ())]
            bound = (b for b in self._bound(left, 0, rows) if b.root < program)
            groups = [
                {c: b for c, b in group.items() if readers.get(c, set[int]()) - group.keys()}
                for group in self._groups(left, bound)
            ]
            for group in sorted(groups, key=len, reverse=True):
                if not any(group.keys() <= others for others in known):
                    known.append(set(group))
                    yield from self._folds(left, repeated, list(group.values()))
            self._folded[left.rule.name] = known

    def _readers(self, program: int) -> dict[int, set[int]]:
        """Which of the program's classes read each class; -1 stands for what it returns."""
        find, readers = self.graph.find, dict[int, set[int]]()
        for root in self.graph.roots:
            readers.setdefault(find(root), set()).add(-1)
        for node in self.graph.nodes:
            klass = find(node.klass)
            if klass < program:
                for c in node.operands:
                    readers.setdefault(find(c), set()).add(klass)
        return readers

    def _fresh(self, name: str, rows: list[Row]) -> list[Row]:
        """The matches of one pattern that no earlier round had."""
        find = self.graph.find
        seen = {
            (find(root), tuple(map(find, classes)), columns)
            for root, classes, columns in self._seen.get(name, ())
        }
        self._seen[name] = set(rows)
        return [row for row in rows if row not in seen]

    def _new(
        self, left: LeftPatterns, combinations: Iterable[tuple[_Bound, ...]]
    ) -> Iterator[tuple[_Bound, ...]]:
        """Those that were not given before."""
        for parts in combinations:
            self.tick()
            roots, classes = tuple(p.root for p in parts), tuple(_classes(parts))
            key = (left.rule.name, roots, classes, tuple(_values(parts)))
            if key not in self._done:
                self._done.add(key)
                yield parts

    def _instances(
        self, left: LeftPatterns, combinations: Iterable[tuple[_Bound, ...]]
    ) -> Iterator[Instance]:
        """Those on which the conditions over several outputs hold."""
        for parts in combinations:
            tensors = {n: c for p in parts for n, c in p.tensors.items()}
            attributes = {n: v for p in parts for n, v in p.attributes.items()}
            if left.rest and not holds(left.rest, bindings(self.graph, tensors, attributes)):
                continue
            yield Instance(left.rule, tuple(p.root for p in parts), tensors, attributes)

    def _bound(self, left: LeftPatterns, k: int, rows: Mapping[str, list[Row]]) -> Iterator[_Bound]:
        for relation in self.engine.relations.get(left.patterns[k], ()):
            for row in rows[relation.name]:
                self.tick()
                bound = self._of_row(relation, row, left.names[k])
                if bound is not None:
                    yield bound

    def _of_row(self, relation: Relation, row: Row, names: Mapping[str, str]) -> _Bound | None:
        root, classes, columns = row
        tensors = dict(zip(relation.pattern.tensors, classes, strict=True))
        values = [value_of(self.engine.attributes[n]) for n in columns]
        attributes: dict[str, Any] = dict(zip(relation.wholes, values, strict=False))
        if relation.checks or relation.left_over:
            shapes = bindings(self.graph, tensors, {})

            def size(text: str, found: Mapping[str, Any]) -> Any:
                return evaluate(text, {**shapes, **found})

            rest = values[len(relation.wholes) :]
            for wanted, found in zip(relation.checks, rest, strict=True):
                if not unify(wanted, found, attributes, size):
                    return None
            if not holds(relation.left_over, {**shapes, **attributes}):
                return None
        return _Bound(
            root,
            {names[v]: c for v, c in tensors.items()},
            {names[s]: v for s, v in attributes.items()},
        )

    # --- rules with several outputs ---

    def _groups(self, left: LeftPatterns, bound: Iterable[_Bound]) -> list[dict[int, _Bound]]:
        """Matches of a symmetric rule's pattern that may all be merged, one for each class."""
        names, pattern = left.names[0], left.patterns[0]
        shared = {*names.values()} & {*left.names[1].values()}
        common = (
            tuple(names[v] for v in pattern.tensors if names[v] in shared),
            tuple(names[s] for s in pattern.attributes if names[s] in shared),
        )
        joined, weights = _joined_variables(left.rule), self.graph.weights
        groups = dict[object, dict[int, _Bound]]()
        for b in bound:
            self.tick()
            light = joined and all(weights[c] for n, c in b.tensors.items() if n in joined)
            free = light or self.cycles != "guarded"
            level = None if free else self.graph.level[b.root]
            key = _key(b.tensors, b.attributes, common, level)
            groups.setdefault(key, {}).setdefault(b.root, b)
        return list(groups.values())

    def _folds(
        self, left: LeftPatterns, repeated: Again, group: list[_Bound]
    ) -> Iterator[Instance]:
        """Merge what fits of a group two by two, then the results; the rest among itself."""
        while len(group) > 1:
            level, rest = group[:1], list[_Bound]()
            for b in group[1:]:
                self.tick()
                instance = self._pair(left, group[0], b)
                fits = instance is not None and self.fits(instance)
                (level if fits else rest).append(b)
            while len(level) > 1:
                pairs, odd = zip(level[::2], level[1::2], strict=False), level[len(level) & ~1 :]
                level = list[_Bound]()
                for a, b in pairs:
                    instance = self._pair(left, a, b)
                    if instance is not None:
                        yield instance
                    made = self.made() if instance is not None else {}
                    if repeated.whole in made:
                        terms = {left.names[0][v]: t for v, t in repeated.terms.items()}
                        tensors = {v: made[t] for v, t in terms.items() if v in a.tensors}
                        level.append(_Bound(made[repeated.whole], tensors, a.attributes))
                    else:
                        level.append(a)
                        rest.append(b)
                level += odd
            group = rest

    def _pair(self, left: LeftPatterns, a: _Bound, b: _Bound) -> Instance | None:
        """Two matches of a symmetric rule's first pattern, the second as one of the other."""
        first, second = left.names
        pattern = left.patterns[0]
        other = _Bound(
            b.root,
            {second[v]: b.tensors[first[v]] for v in pattern.tensors},
            {second[s]: b.attributes[first[s]] for s in pattern.attributes},
        )
        return next(self._instances(left, [(a, other)]), None)

    def _joined(
        self, left: LeftPatterns, bound: Sequence[list[_Bound]]
    ) -> Iterator[tuple[_Bound, ...]]:
        if self.cycles != "guarded":
            yield from self._join(left, bound, lambda b: None)
            return
        yield from self._join(left, bound, lambda b: self.graph.level[b.root])
        joined = _joined_variables(left.rule)
        if joined:
            weights = self.graph.weights
            light = [
                [b for b in part if all(weights[c] for n, c in b.tensors.items() if n in joined)]
                for part in bound
            ]
            yield from self._join(left, light, lambda b: None)

    def _join(
        self, left: LeftPatterns, bound: Sequence[list[_Bound]], extra: Callable[[_Bound], object]
    ) -> Iterator[tuple[_Bound, ...]]:
        """Combinations that agree on shared variables and on `extra`, of different outputs."""
        symmetric = is_symmetric(left)
        tables = list[dict[object, list[_Bound]]]()
        shared = list[tuple[tuple[str, ...], tuple[str, ...]]]()
        seen_tensors, seen_attributes = set[str](), set[str]()
        for part, names, pattern in zip(bound, left.names, left.patterns, strict=True):
            tensors = sorted(seen_tensors & {names[v] for v in pattern.tensors})
            attributes = sorted(seen_attributes & {names[s] for s in pattern.attributes})
            shared.append((tuple(tensors), tuple(attributes)))
            table = dict[object, list[_Bound]]()
            for b in part:
                table.setdefault(_key(b.tensors, b.attributes, shared[-1], extra(b)), []).append(b)
            tables.append(table)
            seen_tensors |= {names[v] for v in pattern.tensors}
            seen_attributes |= {names[s] for s in pattern.attributes}

        def extend(parts: tuple[_Bound, ...]) -> Iterator[tuple[_Bound, ...]]:
            if len(parts) == len(bound):
                yield parts
                return
            tensors = {n: c for p in parts for n, c in p.tensors.items()}
            attributes = {n: v for p in parts for n, v in p.attributes.items()}
            key = _key(tensors, attributes, shared[len(parts)], extra(parts[0]))
            for b in tables[len(parts)].get(key, ()):
                self.tick()
                if any(p.root == b.root for p in parts) or (symmetric and parts[-1].root > b.root):
                    continue
                yield from extend((*parts, b))

        for first in bound[0]:
            yield from extend((first,))


def _key(
    tensors: Mapping[str, int],
    attributes: Mapping[str, Any],
    shared: tuple[tuple[str, ...], tuple[str, ...]],
    extra: object,
) -> object:
    return (tuple(tensors[n] for n in shared[0]), tuple(attributes[n] for n in shared[1]), extra)


def _joined_variables(rule: Rule) -> set[str]:
    """Variables that the right side concatenates."""
    ops = {name.rpartition(".")[2] for name in CHAINED}
    return {
        operand.name
        for term in subterms(rule.right)
        if isinstance(term, Node) and term.op in ops
        for operand in term.operands
        if isinstance(operand, Var)
    }


def bindings(
    graph: EGraph, tensors: Mapping[str, int], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """What conditions read: shapes of tensor variables, values of attribute variables."""
    return {**attributes, **shapes_in({name: graph.types[c] for name, c in tensors.items()})}


def shapes_in(types: Mapping[str, Types]) -> dict[str, Any]:
    """The shapes of variables; those of no single tensor have none."""
    return {
        name: found[0].get_shape()
        for name, found in types.items()
        if len(found) == 1 and isinstance(found[0], ShapedType)
    }


def _classes(parts: Iterable[_Bound]) -> Iterator[int]:
    return (c for p in parts for c in p.tensors.values())


def _values(parts: Iterable[_Bound]) -> Iterator[object]:
    return (v for p in parts for v in p.attributes.values())
