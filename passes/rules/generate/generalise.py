"""From an equality at fixed shapes to a rule: which attributes may vary, and under what conditions.

1. Attributes of the left side become variables; those of the right side become what they could be:
   a variable of the left, an extent, a sum, quotient or product of extents (`expressions.py`).
2. The right side's choice is the one that is right on most random instances of the left side, at
   shapes and ranks other than those the equality was found at. It is looked at on instances where
   each number grows alone, too, and made again with them where it is not right on all: on few
   instances different expressions may agree by coincidence.
3. Where it is not right everywhere, side conditions are looked for: equalities that hold on every
   instance that passed and together fail on every one that did not. Each is shown needed by an
   instance: without it the rule would apply there and be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from ..check import check_rule
from ..conditions import holds
from ..instances import Bindings, InstanceSampler, attribute_names, outcome, shapes_of
from ..rule import CONSTANTS, AttrValue, AttrVar, Node, Rule, Term, nodes_of, variables_of
from ..terms import with_attributes
from .candidates import RuleCandidate
from .expressions import atoms_for, conditions_for, numbers_for

_FIXED = ("perm", "dims", "transpose_a", "transpose_b", "count_include_pad", "ceil_mode")
_PER_NODE = ("sizes",)
_SIZED = ("sizes", "shape")
_PROBES, _FURTHER, _INSTANCES, _SYSTEMATIC, _FEWEST, _CHECKED = 24, 96, 60, 240, 6, 12
_SWEEPS = 2
_MAX_CONDITIONS = 4


@dataclass(frozen=True)
class Failure:
    """The reason why an equality did not become a rule."""

    candidate: RuleCandidate
    reason: str


@dataclass(frozen=True)
class _Trial:
    """An instance, whether the rule is right on it, and whether its right side is well-formed."""

    bindings: Bindings
    right: bool
    makes_sense: bool


def generalise(candidate: RuleCandidate, seed: int = 0) -> Rule | Failure:
    """The most general rule found for an equality, or the reason why there is none.

    The rule is checked on further instances, from its text alone. If it is wrong there, the axes of
    the left side keep their values, or the rule excludes dilation.
    """
    failure = Failure(candidate, "")
    dilated = any(node.attribute("dilations") for node in nodes_of(candidate.left))
    for fixed, narrow in ((_FIXED, False), ((*_FIXED, "axis"), False), (_FIXED, True)):
        if narrow and not dilated:
            continue
        found = _generalise(candidate, fixed, narrow, seed)
        if isinstance(found, Failure):
            failure = found
        elif check_rule(found, _CHECKED, seed + 1).holds:
            return found
        else:
            failure = Failure(candidate, "further instances refute it")
    return failure


def _generalise(
    candidate: RuleCandidate, fixed: tuple[str, ...], narrow: bool, seed: int
) -> Rule | Failure:
    rng = np.random.default_rng([seed, *(len(str(t)) for t in candidate.left)])
    left, values = _with_variables(candidate.left, fixed)
    base: Bindings = {**dict(candidate.shapes), **values}
    probe = Rule("", left, candidate.right)
    if shapes_of(left, base) is None:
        return Failure(candidate, "the left side has no attributes of its own")
    sampler = InstanceSampler(probe, base, rng)
    probes = [base, *(sampler.draw() for _ in range(_PROBES))]
    chosen = _best_right(probe, base, probes, islice(sampler.alone(), _FURTHER))
    if chosen is None:
        return Failure(candidate, "it holds at no other shape")
    if any(_has_fixed_sizes(node) for node in nodes_of(chosen)):
        return Failure(candidate, "the sizes of its right side stay numbers")
    rule = replace(probe, right=chosen)
    drawn = (sampler.draw() for _ in range(_INSTANCES))
    trials = _trials(rule, [*probes, *drawn, *islice(sampler.systematic(), _SYSTEMATIC)])
    conditions = _narrowed if narrow else _conditions
    where = conditions(rule, trials, len(sampler.bases) == 1)
    if where is None:
        return Failure(candidate, "no side condition tells where it holds")
    return replace(rule, where=where)


def _has_fixed_sizes(node: Node) -> bool:
    sizes = node.attribute("sizes")
    return isinstance(sizes, tuple) and any(isinstance(size, int) for size in sizes)


def _trials(rule: Rule, instances: Sequence[Bindings]) -> list[_Trial]:
    trials = list[_Trial]()
    for bindings in {repr(sorted(b.items())): b for b in instances}.values():
        found = outcome(rule, bindings)
        if found.applies:
            trials.append(_Trial(bindings, found.equal, found.left == found.right))
    return trials


# --- the left side ------------------------------------------------------------------------------


def _with_variables(
    terms: tuple[Term, ...], fixed: tuple[str, ...]
) -> tuple[tuple[Term, ...], Bindings]:
    """Terms whose attributes are variables, and the values of these variables."""
    names: dict[tuple[Any, ...], str] = {}
    values: Bindings = {}

    def variable(node: Node, name: str, value: AttrValue) -> AttrValue:
        if name in fixed:
            return value
        key = (node, name) if name in _PER_NODE or node.op in CONSTANTS else (name, value)
        if key not in names:
            count = sum(1 for other in values if other.rstrip("0123456789") == name)
            names[key] = name if count == 0 else f"{name}{count + 1}"
            values[names[key]] = value
        return AttrVar(names[key])

    return with_attributes(terms, variable), values


# --- the right side -----------------------------------------------------------------------------


def _best_right(
    rule: Rule, base: Bindings, probes: Sequence[Bindings], further: Iterator[Bindings]
) -> tuple[Term, ...] | None:
    """The right side whose attribute expressions are right on most of the probes.

    If it is wrong on a further instance, the choice is repeated with these instances. The choice
    that is right on more instances is taken.
    """
    most, chosen = _descend(rule, base, probes)
    every = [*probes, *further]
    known = _score(replace(rule, right=chosen), every, -1)
    if known < len(every):
        score, other = _descend(rule, base, every)
        most, chosen = (score, other) if score > known else (most, chosen)
    return chosen if most >= min(3, len(probes)) else None


def _descend(
    rule: Rule, base: Bindings, probes: Sequence[Bindings]
) -> tuple[int, tuple[Term, ...]]:
    """A right side, and the number of probes on which it is right.

    One attribute (of a list: one number) after the other is given the most general of its best
    expressions, the others as they are; twice, as one choice may wait for another.
    """
    slots = [(node, name) for node in nodes_of(rule.right) for name, _ in node.attributes]
    values: dict[tuple[Node, str], AttrValue] = {
        (node, name): value for node, name in slots if (value := node.attribute(name)) is not None
    }
    most = max(0, _score(rule, probes, -1))
    for _ in range(_SWEEPS):
        for slot in slots:
            for part in _parts(slot[1], slot[0].attribute(slot[1])):
                choices = _choices(slot, part, values[slot], rule, base)
                most, values[slot] = _best_choice(rule, values, slot, choices, probes)
        if most == len(probes):
            break
    return most, _right(rule, values)


def _parts(name: str, value: AttrValue | None) -> Sequence[int | None]:
    """The parts that are chosen in turn: the attribute as a whole, then each of its numbers."""
    if name in _FIXED:
        return []
    return [None, *range(len(value))] if isinstance(value, tuple) and name in _SIZED else [None]


def _choices(
    slot: tuple[Node, str], part: int | None, now: AttrValue, rule: Rule, base: Bindings
) -> list[AttrValue]:
    """Candidate expressions for the attribute or one of its numbers, with its present value."""
    node, name = slot
    value = node.attribute(name)
    assert value is not None
    if part is None:
        return [*atoms_for(name, value, rule, base), now]
    if not isinstance(now, tuple) or not isinstance(value, tuple):
        return [now]
    atoms = numbers_for(name, value[part], rule, base)
    return [(*now[:part], atom, *now[part + 1 :]) for atom in (*atoms, now[part])]


def _best_choice(
    rule: Rule,
    values: dict[tuple[Node, str], AttrValue],
    slot: tuple[Node, str],
    choices: Sequence[AttrValue],
    probes: Sequence[Bindings],
) -> tuple[int, AttrValue]:
    best, most = values[slot], -1
    for choice in dict.fromkeys(choices):
        right = _right(rule, {**values, slot: choice})
        score = _score(replace(rule, right=right), probes, most)
        if score > most:
            best, most = choice, score
        if most == len(probes):
            break
    return most, best


def _right(rule: Rule, values: dict[tuple[Node, str], AttrValue]) -> tuple[Term, ...]:
    return with_attributes(rule.right, lambda node, name, _: values[node, name])


def _score(rule: Rule, probes: Sequence[Bindings], to_beat: int) -> int:
    """The number of probes on which the rule is right. Shapes are compared first."""
    fits = [b for b in probes if shapes_of(rule.left, b) == shapes_of(rule.right, b)]
    if len(fits) <= to_beat:
        return -1
    score = 0
    for k, bindings in enumerate(fits):
        score += outcome(rule, bindings).equal
        if score + len(fits) - k - 1 <= to_beat:
            return -1
    return score


# --- side conditions ----------------------------------------------------------------------------


def _conditions(rule: Rule, trials: Sequence[_Trial], one_rank: bool) -> tuple[str, ...] | None:
    """Conditions that separate right instances from wrong ones; None if wrong values remain.

    Every rule requires a well-formed right side anyway. Conditions state it where the families of
    expressions allow.
    """
    good = [t.bindings for t in trials if t.right]
    if len(good) < _FEWEST:
        return None
    where = list(_rank_condition(rule, good)) if one_rank else []
    pool = [c for c in conditions_for(rule, good[0]) if all(holds((c,), b) for b in good)]
    wrong = [t.bindings for t in trials if not t.right and t.makes_sense]
    where += _cover(pool, wrong, where)
    if any(holds(tuple(where), b) for b in wrong):
        return None
    shapes = [t.bindings for t in trials if not t.right and not t.makes_sense]
    where += _cover([c for c in pool if ".rank" not in c.split("==")[0]], shapes, where)
    return tuple(_needed(where, [*wrong, *shapes], one_rank))


def _narrowed(rule: Rule, trials: Sequence[_Trial], one_rank: bool) -> tuple[str, ...] | None:
    """Narrower conditions than necessary: no dilation.

    A window of one tap has no dilation to speak of, so "the dilation is 1" does not hold wherever
    a rule does, and yet may be all that tells right from wrong.
    """
    dilations = [v for v, a in attribute_names(rule.left).items() if a == "dilations"]
    texts = tuple(f"{variable}[{k}] == 1" for variable in dilations for k in range(2))
    if not texts or not all(len(t.bindings[v]) == 2 for t in trials for v in dilations):
        return None
    where = _conditions(rule, [t for t in trials if holds(texts, t.bindings)], one_rank)
    return None if where is None else (*where, *(t for t in texts if t not in where))


def _cover(pool: Sequence[str], bad: list[Bindings], known: Sequence[str]) -> list[str]:
    """A small set of conditions, chosen greedily, so that each instance in `bad` breaks one."""
    where = list[str]()
    left = [b for b in bad if holds(tuple(known), b)]
    while left and len(where) < _MAX_CONDITIONS:
        counts = [sum(1 for b in left if not holds((c,), b)) for c in pool]
        most = max(counts, default=0)
        if most == 0:
            break
        where.append(pool[counts.index(most)])
        left = [b for b in left if holds((where[-1],), b)]
    return where


def _rank_condition(rule: Rule, good: Sequence[Bindings]) -> Iterator[str]:
    """If the rule was tried at one rank only, a condition that fixes this rank."""
    names = variables_of(rule.left)
    rank = max(len(good[0][name]) for name in names)
    yield next(f"{name}.rank == {rank}" for name in names if len(good[0][name]) == rank)


def _needed(where: list[str], bad: Sequence[Bindings], keep_first: bool) -> Iterator[str]:
    """The conditions that are needed to exclude some wrong instance."""
    kept = list(where)
    for condition in where[1 if keep_first else 0 :]:
        rest = tuple(c for c in kept if c != condition)
        if not any(holds(rest, b) for b in bad):
            kept.remove(condition)
    yield from kept
