"""Drop rules that are special cases of others, now that attributes and conditions are known.

A rule is a special case of another if terms for the other's variables turn its sides into this
rule's, and if wherever this rule applies, on all instances tried, the other makes the same graph.
Laws meet here that were found in different worlds: `concat(a, concat(a, b))` of images is a special
case of what matrices say of any axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from ..conditions import holds
from ..instances import (
    Bindings,
    InstanceSampler,
    attributes_of,
    first_instances,
    outcome,
    shapes_of,
)
from ..rule import AttrVar, Node, Out, Rule, Term, nodes_of, operator_count, variables_of
from ..terms import matches

_BASES, _INSTANCES = 2, 60


def without_special_cases(rules: Sequence[Rule]) -> list[Rule]:
    """The rules that are not special cases of another. General rules come first."""
    kept = list[Rule]()
    tops: dict[object, list[Rule]] = {}
    for rule in sorted(rules, key=_generality):
        if not any(is_special_case(rule, other) for other in tops.get(_top(rule), [])):
            kept.append(rule)
            tops.setdefault(_top(rule), []).append(rule)
    return kept


def _generality(rule: Rule) -> tuple[int, ...]:
    size = operator_count(rule.left) + operator_count(rule.right)
    return (size, -len(variables_of(rule.left)), len(rule.where))


def _top(rule: Rule) -> object:
    nodes = [t.node if isinstance(t, Out) else t for t in rule.left]
    return tuple(n.op for n in nodes if isinstance(n, Node))


@dataclass
class _Matched:
    """A mapping from one rule to another: terms and attributes of its variables, pairs of nodes."""

    tensors: dict[str, Term] = field(default_factory=dict[str, Term])
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    nodes: dict[tuple[Node, Node], None] = field(default_factory=dict[tuple[Node, Node], None])

    def match(self, general: Sequence[Term], special: Sequence[Term]) -> bool:
        """Whether one rule maps to the other. Fills all three fields."""
        return matches(general, special, self.tensors, self._alike)

    def _alike(self, a: Node, b: Node) -> bool:
        names = [n for n, _ in a.attributes] == [n for n, _ in b.attributes]
        if a.op != b.op or not names or not self._attributes(a, b):
            return False
        self.nodes[a, b] = None
        return True

    def _attributes(self, a: Node, b: Node) -> bool:
        """Bind variables. Other differences are compared by value later."""
        for (_, x), (_, y) in zip(a.attributes, b.attributes, strict=True):
            if isinstance(x, AttrVar) and self.attributes.setdefault(x.name, y) != y:
                return False
        return True

    def bindings(self, at: Bindings) -> Bindings | None:
        """The values of the general rule's variables on an instance of the special rule."""
        found: Bindings = {}
        for name, term in self.tensors.items():
            shapes = shapes_of((term,), at)
            if shapes is None:
                return None
            found[name] = shapes[0]
        node = Node("", (), tuple(self.attributes.items()))
        values = attributes_of(node, at)
        return None if values is None else {**found, **dict(values)}

    def same_graph(self, at: Bindings, where: tuple[str, ...]) -> bool:
        """Whether the general rule applies to an instance and makes the same ops."""
        bound = self.bindings(at)
        if bound is None or not holds(where, bound):
            return False
        return all(attributes_of(a, bound) == attributes_of(b, at) for a, b in self.nodes)


def is_special_case(rule: Rule, other: Rule) -> bool:
    """Whether `other` covers every case of `rule`."""
    matched = _Matched()
    if not matched.match((*other.left, *other.right), (*rule.left, *rule.right)):
        return False
    bound = set(matched.attributes) | set(matched.tensors)
    if not all(_names(node) <= bound for node in nodes_of(other.left)):
        return False
    found = _applications(rule)
    return bool(found) and all(matched.same_graph(at, other.where) for at in found)


def _names(node: Node) -> set[str]:
    return {value.name for _, value in node.attributes if isinstance(value, AttrVar)}


def _applications(rule: Rule) -> list[Bindings]:
    """Instances on which a rule applies."""
    rng, found = np.random.default_rng(0), list[Bindings]()
    for base in islice(first_instances(rule), _BASES):
        sampler = InstanceSampler(rule, base, rng)
        drawn = [*islice(sampler.systematic(), _INSTANCES), *(sampler.draw() for _ in range(20))]
        for at in drawn:
            if holds(rule.where, at) and outcome(rule, at).equal:
                found.append(at)
    return found
