"""The labels of rules for floats are what running them shows."""

import pytest

from isoform.dialects.errors import UserError
from isoform.dialects.floats import Allowed, Label
from isoform.passes.rules.floats import allowed_rules, classified, floats_of
from isoform.passes.rules.rule import Rule
from isoform.passes.rules.rule_set import shipped
from isoform.passes.rules.rule_text import parse_rules, print_rules

RULES = shipped("default")
# Law, label, whether infinities and NaN stay where they are.
KNOWN = """
add(?a, ?b) => add(?b, ?a)                                    | bits | kept
neg(neg(?a)) => ?a                                            | bits | kept
sub(?a, ?b) => add(?a, neg(?b))                               | bits | kept
relu(relu(?a)) => relu(?a)                                    | bits | kept
add(add(?a, ?b), ?c) => add(?a, add(?b, ?c))                  | rounding | kept
mul(mul(?a, ?b), ?c) => mul(?a, mul(?b, ?c))                  | rounding | kept
add(mul(?a, ?b), mul(?a, ?c)) => mul(?a, add(?b, ?c))         | rounding | moved
div(?a, ?b) => mul(?a, reciprocal(?b))                        | rounding | kept
div(div(?a, ?b), ?c) => div(?a, mul(?b, ?c))                  | rounding | kept
matmul(matmul(?a, ?b), ?c) => matmul(?a, matmul(?b, ?c))      | rounding | moved
sub(add(?a, ?b), ?b) => ?a                                    | values | moved
sub(add(?a, ?a), ?a) => ?a                                    | values | moved
sub(sub(?a, ?b), sub(?a, ?c)) => sub(?c, ?b)                  | values | moved
div(mul(?a, ?b), ?b) => ?a                                    | values | moved
mul(sqrt(?a), sqrt(?a)) => ?a                                 | values | moved
exp(log(?a)) => ?a                                            | values | moved
sub(matmul(?a, ?b), matmul(?a, ?c)) => matmul(?a, sub(?b, ?c)) | rounding | moved
"""
LAWS = [tuple(part.strip() for part in line.split("|")) for line in KNOWN.strip().splitlines()]


def rule_of(law: str, head: str = "") -> Rule:
    (rule,) = parse_rules(f"rule law\n{head}  {law}\n")
    return rule


@pytest.mark.parametrize(("law", "label", "infinities"), LAWS)
def test_running_a_law_finds_its_label(law: str, label: str, infinities: str) -> None:
    for rule in (rule_of(law), rule_of(law).reversed()):
        if {*rule.variables} >= {*rule.reversed().variables}:
            found = classified(rule)
            assert found.label == label
            assert bool(found.infinities) == (infinities == "moved")


@pytest.mark.parametrize("rule", RULES[::40], ids=lambda r: r.name)
def test_a_shipped_label_is_what_running_shows(rule: Rule) -> None:
    assert classified(rule) == rule.floats


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_every_shipped_label_is_what_running_shows(rule: Rule) -> None:
    assert classified(rule) == rule.floats


# Of laws that seem to keep infinities: inf - inf, inf times a pad, inf times a sum that cancels.
@pytest.mark.parametrize("name", ["matmul-of-sub", "conv-of-scaled-image", "matmul-scaled"])
def test_laws_that_move_infinities_are_left_out_where_the_user_says_so(name: str) -> None:
    (law,) = (rule for rule in shipped("laws") if rule.name == name)
    assert allowed_rules([law], Allowed(strict_nan=True))[0] == ()
    assert classified(law) == law.floats


def test_no_shipped_rule_changes_values() -> None:
    assert {rule.floats.label for rule in RULES if rule.floats} == {Label.BITS, Label.ROUNDING}


def test_a_label_is_read_and_printed() -> None:
    rule = rule_of("relu(?a) => relu(?a)", "  floats rounding, NaN may go\n")
    assert floats_of(rule).infinities == "NaN may go"
    assert parse_rules(print_rules([rule])) == (rule,)
    with pytest.raises(UserError, match="unknown label 'exact'"):
        rule_of("relu(?a) => relu(?a)", "  floats exact\n")


def test_what_is_not_allowed_is_left_out_with_the_reason() -> None:
    cancels, merges = rule_of(LAWS[10][0]), rule_of(LAWS[6][0])
    assert allowed_rules([cancels, merges], Allowed())[0] == (merges,)
    assert allowed_rules([cancels, merges], Allowed(fast_math=True))[0] == (cancels, merges)
    kept, refused = allowed_rules([cancels, merges], Allowed(strict_nan=True))
    assert kept == () and len(refused) == 2
    assert "--fast-math" in refused[0].reason and "--strict-nan" in refused[1].reason
