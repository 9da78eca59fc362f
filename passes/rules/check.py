"""Check a rule by exact values on random shapes. This check overrules every proof.

`refuted` is certain: on one instance the conditions hold, both sides are well-formed, and the
values differ. `holds` is evidence: the values were equal on that many instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from .conditions import holds
from .instances import (
    Bindings,
    InstanceSampler,
    first_instances,
    nearest_instances,
    outcome,
    with_spatial_dims,
)
from .rule import Rule, variables_of

_BASES, _MAX_BASES, _NEXT = 3, 7, 300


@dataclass(frozen=True)
class RuleCheck:
    """The result of checking a rule by exact values.

    Attributes:
        instances: the number of distinct instances on which the rule applied and was right.
        wrong: an instance on which the rule is wrong; None if none was found.
    """

    rule: Rule
    instances: int
    wrong: Bindings | None

    @property
    def holds(self) -> bool:
        return self.wrong is None and self.instances > 0


def check_rule(
    rule: Rule, count: int = 20, seed: int = 0, tries: int = 60, thorough: bool = False
) -> RuleCheck:
    """Apply a rule to systematic instances, then to random ones until there are `count`.

    Args:
        tries: the largest number of draws for each of `count` instances.
        thorough: the systematic instances also try every axis with every attribute value.
    """
    rng = np.random.default_rng([seed, len(rule.name)])
    seen = dict[str, None]()
    samplers = [InstanceSampler(rule, base, rng) for base in bases(rule)]
    systematic = chain.from_iterable(s.systematic(thorough) for s in samplers)
    for bindings in _in_other_dims(rule, systematic):
        if (wrong := _applied(rule, bindings, seed, seen)) is not None:
            return RuleCheck(rule, len(seen), wrong)
    for sampler in samplers:
        for _ in range(count * tries):
            if len(seen) >= count:
                return RuleCheck(rule, len(seen), None)
            if (wrong := _applied(rule, sampler.draw(), seed, seen)) is not None:
                return RuleCheck(rule, len(seen), wrong)
    return RuleCheck(rule, len(seen), None)


def _in_other_dims(rule: Rule, instances: Iterable[Bindings]) -> Iterator[Bindings]:
    """The instances; before every fourth one the same on signals and volumes, which cost more."""
    for number, bindings in enumerate(instances):
        others = [with_spatial_dims(rule, bindings, k) for k in (1, 3)] if number % 4 == 0 else []
        yield from (other for other in others if other is not None)
        yield bindings


def bases(rule: Rule) -> list[Bindings]:
    """The first instances, then the first of each other combination of ranks among the next."""
    found = nearest_instances(rule, _BASES)
    seen = {_ranks(rule, base) for base in found}
    for base in islice(first_instances(rule), _BASES, _NEXT):
        if len(found) < _MAX_BASES and _ranks(rule, base) not in seen:
            seen.add(_ranks(rule, base))
            found.append(base)
    return found


def _ranks(rule: Rule, bindings: Bindings) -> tuple[int, ...]:
    return tuple(len(bindings[name]) for name in variables_of(rule.left))


def _applied(rule: Rule, bindings: Bindings, seed: int, seen: dict[str, None]) -> Bindings | None:
    """Return the instance if the rule is wrong on it; otherwise record it as seen."""
    key = repr(sorted(bindings.items()))
    if key in seen or not holds(rule.where, bindings):
        return None
    found = outcome(rule, bindings, seed)
    if not found.applies or found.left != found.right:
        return None
    if not found.equal:
        return bindings
    seen[key] = None
    return None
