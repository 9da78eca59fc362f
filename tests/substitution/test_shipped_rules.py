"""The rules that ship: each holds on shapes of its own choice."""

import pytest

from isoform.passes.rules.check import check_rule
from isoform.passes.rules.prove.verdicts import verify_rule
from isoform.passes.rules.rule import Rule
from isoform.passes.rules.rule_set import rules_named, shipped

RULES = shipped("default")


@pytest.mark.parametrize("rule", RULES[::40], ids=lambda r: r.name)
def test_a_shipped_rule_holds(rule: Rule) -> None:
    found = check_rule(rule, 6, seed=3)
    assert found.holds, found.wrong


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_every_shipped_rule_has_the_verdict_it_claims(rule: Rule) -> None:
    assert verify_rule(rule, 20, seed=1).rule.proof == rule.proof


def test_nothing_refuted_ships_and_only_the_proved_is_on() -> None:
    assert all(rule.proof != "refuted" for rule in RULES)
    assert set(rules_named("default")) == {r for r in RULES if r.proof.startswith("proved")}


def test_the_merges_of_a_shared_operand_are_there() -> None:
    names = {rule.name for rule in rules_named("default") if len(rule.left) > 1}
    assert "matmul-and-matmul-to-split-matmul-concat" in names
