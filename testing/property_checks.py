"""Check properties and facts by execution: on every small shape, in exact arithmetic.

A property's `rule.source` is its mode. In every mode the sides must be equal if the condition holds
and the left side is defined. Unless the mode is `DEFINED`, the right side must be undefined if the
left side is. A fact is checked if its op is defined. This keeps the axioms consistent: the small
tensors, with one value for "undefined", are a model of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from ..passes.rules.check import bases
from ..passes.rules.conditions import evaluate, holds, names_in
from ..passes.rules.instances import (
    Bindings,
    InstanceSampler,
    first_instances,
    outcome,
    shapes_of,
)
from ..passes.rules.prove.by_z3 import DEFINED, STEPS, properties, proved_by_z3
from ..passes.rules.prove.encoder import attributes_of
from ..passes.rules.prove.facts import FACTS
from ..passes.rules.rule import Node, Out, Rule, Term, Var, variables_of
from ..passes.rules.terms import attribute_names

_BASES = 4


@dataclass(frozen=True)
class PropertyVerdict:
    """The result of executing one property.

    Attributes:
        instances: on how many both sides were defined and equal.
        wrong: an instance on which it fails, or None.
    """

    rule: Rule
    instances: int
    wrong: Bindings | None


def check_property(rule: Rule, count: int = 60, seed: int = 0) -> PropertyVerdict:
    """Execute a property on instances of its left and of its right side."""
    equal_instances, wrong = 0, None
    for bindings in _instances(rule, count, seed):
        if not holds(rule.where, bindings):
            continue
        found = outcome(rule, bindings)
        is_defined = found.left is not None
        if is_defined and found.equal:
            equal_instances += 1
        elif is_defined and (found.right != found.left or not _left_is_undefined(rule, bindings)):
            wrong = wrong or bindings
    if rule.source != DEFINED:
        wrong = wrong or _only_right(rule, count, seed)
    return PropertyVerdict(rule, equal_instances, wrong)


def _left_is_undefined(rule: Rule, bindings: Bindings) -> bool:
    return outcome(rule, bindings).left is None


def _instances(rule: Rule, count: int, seed: int) -> Iterator[Bindings]:
    """Instances of the left side; conditions are checked later."""
    rng = np.random.default_rng(seed)
    for _, base in zip(range(_BASES), first_instances(rule), strict=False):
        sampler = InstanceSampler(rule, base, rng)
        yield base
        for _ in range(count // _BASES):
            yield sampler.draw()


def _only_right(rule: Rule, count: int, seed: int) -> Bindings | None:
    """Return an instance on which the right side is defined and the left is not, or None."""
    back = Rule("", rule.right, rule.left, ())
    if {*attribute_names(rule.left)} != {*attribute_names(rule.right)}:
        return None  # a right side with computed attributes binds nothing to try
    needed = set(variables_of(rule.left))
    for bindings in _instances(back, count, seed + 1):
        if set(bindings) < needed or not holds(rule.where, bindings):
            continue
        right = shapes_of(rule.right, bindings)
        if right is not None and shapes_of(rule.left, bindings) is None:
            return bindings
    return None


# --- facts --------------------------------------------------------------------------------------


def wrong_facts(rules: Sequence[Rule] | None = None, count: int = 20, seed: int = 0) -> list[str]:
    """Return the facts that an op of some instance of a property violates."""
    wrong = dict[str, None]()
    for rule in properties() if rules is None else rules:
        for bindings in _instances(rule, count, seed):
            for term in (*rule.left, *rule.right):
                for text in _check_facts(term, bindings):
                    wrong[text] = None
    return list(wrong)


def _check_facts(term: Term, bindings: Bindings) -> Iterator[str]:
    if isinstance(term, Var) or shapes_of((term,), bindings) is None:
        return
    node = term.node if isinstance(term, Out) else term
    key = f"{node.op}.{term.index}" if isinstance(term, Out) else node.op
    key = f"{node.op}/3" if len(node.operands) == 3 else key
    for operand in node.operands:
        yield from _check_facts(operand, bindings)
    shapes = shapes_of((*node.operands, term), bindings)
    if shapes is None or key not in FACTS:
        return
    known: dict[str, Any] = dict(zip("abc", shapes, strict=False))
    known |= _values(node, bindings) | {"out": shapes[-1]}
    for text in FACTS[key]:
        positions = range(len(shapes[-1])) if "i" in names_in(text) else (0,)
        if not all(evaluate(text, {**known, "i": k}) for k in positions):
            yield f"{key}: {text}"


def _values(node: Node, bindings: Bindings) -> dict[str, Any]:
    from ..dialects.errors import UserError
    from ..passes.rules.exact import graph_ops
    from ..passes.rules.instances import attributes_of as values_of

    given = values_of(node, bindings)
    if given is None:
        raise UserError(f"{node.op} has no attributes here")
    defaults = graph_ops()[node.op].DEFAULTS if node.op in graph_ops() else {}
    return {name: dict(given).get(name, defaults.get(name)) for name in attributes_of(node.op)}


def is_implied(rule: Rule, given: Sequence[Rule], steps: int = STEPS) -> bool:
    """Whether z3 proves a property from the others."""
    rest = [other for other in given if other is not rule]
    return proved_by_z3(replace(rule, source=""), rest, steps)


# --- side conditions ----------------------------------------------------------------------------


def counterexample(rule: Rule, dropped: str, seed: int = 0, tries: int = 400) -> Bindings | None:
    """An instance on which the rule without one condition is wrong; None if none was found.

    The rule is wrong if the values differ or the right side is not well-formed.
    """
    loose = replace(rule, where=tuple(c for c in rule.where if c != dropped))
    rng = np.random.default_rng(seed)
    for base in [*islice(first_instances(loose), _BASES), *bases(loose)]:
        sampler = InstanceSampler(loose, base, rng)
        drawn = (sampler.draw() for _ in range(tries))
        for bindings in chain(sampler.systematic(), drawn):
            if holds(loose.where, bindings) and not holds((dropped,), bindings):
                found = outcome(loose, bindings)
                if found.applies and not found.equal:
                    return bindings
    return None
