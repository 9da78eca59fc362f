"""Proof of a rule by z3: from the properties and the facts, both sides are one tensor.

Assumed of the goal: its conditions, and that both sides make sense and are of one type (a rule
applies only there).
z3 is asked whether they could still differ; "unsat" is a proof, "unknown" is no verdict. What it
may spend is counted in its own steps, not in seconds: the verdict is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import z3

from ..conditions import compiled_as, names_in
from ..instances import attribute_names
from ..rule import Rule
from ..rule_text import parse_rules
from .encoder import signature
from .facts import FACTS
from .formulas import (
    INT,
    MEANING,
    TENSOR,
    Encoder,
    conditions_of,
    constants_of,
    consts_in,
    dim,
    extent_axioms,
    function_of,
    list_axioms,
    same_type,
    sense,
    sort_of,
)

DEFINED = "where the left side makes sense"
STEPS = 4_000_000
"""z3's resource limit for one output of a rule: about three seconds."""


@cache
def properties() -> tuple[Rule, ...]:
    """The properties of the package."""
    text = files(__name__.rpartition(".")[0]).joinpath("properties.rules").read_text()
    return parse_rules(text, "properties.rules")


def proved_by_z3(rule: Rule, given: Sequence[Rule] | None = None, steps: int = STEPS) -> bool:
    """Whether z3 proves the rule from the properties (`given` ones, or all of the package)."""
    bindings = constants_of(rule, "goal_")
    encoder = Encoder(bindings)
    left = [encoder.term(term) for term in rule.left]
    right = [encoder.term(term) for term in rule.right]
    known = list(all_axioms() if given is None else axioms_of(given))
    known += [sense(term) for term in (*left, *right)]
    known += conditions_of(rule.where, bindings)
    axes = [bindings[n] for n, a in attribute_names(rule.left).items() if a == "axis"]
    for a, b in zip(left, right, strict=True):
        known += same_type(a, b, axes)
    return all(_cannot_be([*known, a != b], steps) for a, b in zip(left, right, strict=True))


def _cannot_be(formulas: Sequence[Any], steps: int) -> bool:
    """Whether z3 finds that the formulas contradict each other, within its steps.

    A context of their own, as what was proved before would change z3's choices, and no `push`: it
    lets formulas work on each other before `check` begins to count steps, minutes for some rules.
    """
    context = z3.Context()
    solver: Any = z3.SimpleSolver(ctx=context)
    solver.set("rlimit", steps)
    solver.set("random_seed", 1)
    solver.set("auto_config", False)
    solver.set("smt.mbqi", False)
    solver.add(*[formula.translate(context) for formula in formulas])
    return solver.check() == z3.unsat


@cache
def all_axioms() -> tuple[Any, ...]:
    """Every property and fact of the package as a formula."""
    return tuple(axioms_of(properties()))


def axioms_of(given: Sequence[Rule]) -> list[Any]:
    """Properties, facts of shapes, and elements of lists."""
    axioms = [*list_axioms(), *extent_axioms()]
    for key, facts in FACTS.items():
        axioms += _facts(key, facts)
    for rule in given:
        axioms += _property(rule)
    return axioms


def _property(rule: Rule) -> list[Any]:
    """Both directions, each to be used where its one side is met."""
    bindings = constants_of(rule)
    plain = Encoder(bindings)
    left, right = plain.term(rule.left[0]), plain.term(rule.right[0])
    where = conditions_of(rule.where, bindings)
    if rule.source == DEFINED:
        where.append(sense(left))
    found = list[Any]()
    for side, other in ((rule.left[0], right), (rule.right[0], left)):
        flat = Encoder(bindings, flat=True)
        pattern = flat.term(side)
        variables = [*consts_in(bindings), *flat.fresh]
        if not _covers(pattern, variables):
            continue
        body = z3.Implies(z3.And([*where, *flat.equations]), pattern == other)
        found.append(z3.ForAll(variables, body, patterns=[pattern]) if variables else body)
    return found


def _covers(pattern: Any, variables: Sequence[Any]) -> bool:
    if z3.is_const(pattern):
        return not variables and pattern.num_args() > 0
    inside, stack = set[int](), [pattern]
    while stack:
        term = stack.pop()
        inside.add(term.get_id())
        stack += term.children()
    return all(v.get_id() in inside for v in variables)


def _facts(key: str, facts: Sequence[str]) -> list[Any]:
    """An op that makes sense: so do its operands, and shapes are as the facts say."""
    op, names, given = signature(key, facts)
    operands = [z3.Const(name, TENSOR) for name in names]
    attributes = {n: z3.Const(n, sort_of(n)) for n in given}
    values: list[Any] = list(attributes.values())
    bindings: dict[str, Any] = {**dict(zip(names, operands, strict=True)), **attributes}
    if op == "split":
        sizes = z3.Ints("size_0 size_1")
        values, bindings["sizes"] = [attributes["axis"], *sizes], tuple(sizes)
    out, i = function_of(key, len(names))(*operands, *values), z3.Const("i", INT)
    bindings |= {"out": out, "i": i}
    constants = [c for c in (*operands, *values) if z3.is_const(c)]
    plain = [text for text in facts if "i" not in names_in(text)]
    known = [sense(o) for o in operands] + conditions_of(plain, bindings)
    axioms = [_for_all(constants, z3.Implies(sense(out), z3.And(known)), [out])] if known else []
    for text in facts:
        if text in plain:
            continue
        body = z3.Implies(sense(out), compiled_as(text, MEANING)(bindings))
        for value in (out, *operands):
            pattern = dim(value, i) if value is out else z3.MultiPattern(out, dim(value, i))
            axioms.append(_for_all([*constants, i], body, [pattern]))
    return axioms


def _for_all(variables: Sequence[Any], body: Any, patterns: list[Any]) -> Any:
    return z3.ForAll(list(variables), body, patterns=patterns) if variables else body
