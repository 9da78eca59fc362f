"""The verdict of a rule: refuted where values say so, else proved by whoever can, else checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..check import RuleCheck, check_rule
from ..rule import Rule
from .encoder import NotEncodedError

INSTANCES = 20
_AGAIN = 10


@dataclass(frozen=True)
class VerifiedRule:
    """A rule with its verdict in `rule.proof`, and the instances it was applied to."""

    rule: Rule
    checked: RuleCheck


def verify_rule(rule: Rule, count: int = INSTANCES, seed: int = 0) -> VerifiedRule:
    """Check a rule on `count` instances and try both provers; values overrule proofs.

    What neither proves is checked again, on many more. A rule that applies nowhere is refuted:
    there is nothing that it says.
    """
    from .by_egraph import proved_by_egraph
    from .by_z3 import proved_by_z3

    checked = check_rule(rule, count, seed)
    if not checked.holds:
        return VerifiedRule(replace(rule, proof="refuted"), checked)
    try:
        if proved_by_z3(rule):
            return VerifiedRule(replace(rule, proof="proved-by-z3"), checked)
        if proved_by_egraph(rule):
            return VerifiedRule(replace(rule, proof="proved-by-e-graph"), checked)
    except NotEncodedError:
        pass
    again = check_rule(rule, _AGAIN * count, seed + 1, thorough=True)
    if not again.holds:
        return VerifiedRule(replace(rule, proof="refuted"), again)
    return VerifiedRule(replace(rule, proof="checked-only"), again)
