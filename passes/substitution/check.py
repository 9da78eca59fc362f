"""Does a rule hold? Exact values on random shapes: the judge that no proof overrules.

`refuted` is certain: there is an instance where conditions hold, both sides make sense, and the
values differ. `holds` is evidence: on that many instances of other shapes they were equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .conditions import holds
from .instances import Bindings, Sampler, first_instances, outcome
from .rule import Rule

_BASES = 3


@dataclass(frozen=True)
class Checked:
    """What exact values say of a rule.

    Attributes:
        instances: distinct ones on which it applied and was right.
        wrong: an instance on which it is not; None where none was met.
    """

    rule: Rule
    instances: int
    wrong: Bindings | None

    @property
    def holds(self) -> bool:
        return self.wrong is None and self.instances > 0


def check_rule(rule: Rule, count: int = 20, seed: int = 0, tries: int = 60) -> Checked:
    """Apply a rule to up to `count` random instances, `tries` draws for each at most."""
    rng = np.random.default_rng([seed, len(rule.name)])
    seen = dict[str, None]()
    for _, base in zip(range(_BASES), first_instances(rule), strict=False):
        sampler = Sampler(rule, base, rng)
        for k in range(count * tries):
            bindings = base if k == 0 else sampler.draw()
            key = repr(sorted(bindings.items()))
            if key in seen or not holds(rule.where, bindings):
                continue
            found = outcome(rule, bindings, seed)
            if not found.applies or found.left != found.right:
                continue
            if not found.equal:
                return Checked(rule, len(seen), bindings)
            seen[key] = None
            if len(seen) >= count:
                return Checked(rule, len(seen), None)
    return Checked(rule, len(seen), None)


def counterexample(rule: Rule, dropped: str, seed: int = 0, tries: int = 400) -> Bindings | None:
    """Where the rule goes wrong without one of its conditions; None where no instance shows it.

    Wrong is: the values differ, or the right side makes no sense.
    """
    loose = replace(rule, where=tuple(c for c in rule.where if c != dropped))
    rng = np.random.default_rng(seed)
    for _, base in zip(range(_BASES), first_instances(loose), strict=False):
        sampler = Sampler(loose, base, rng)
        for k in range(tries):
            bindings = base if k == 0 else sampler.draw()
            if holds(loose.where, bindings) and not holds((dropped,), bindings):
                found = outcome(loose, bindings)
                if found.applies and not found.equal:
                    return bindings
    return None
