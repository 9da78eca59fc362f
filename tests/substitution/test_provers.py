"""Properties, the two provers, and the judge that no proof overrules."""

import time
from dataclasses import replace

import pytest

from isoform.passes.rules.check import check_rule
from isoform.passes.rules.instances import outcome
from isoform.passes.rules.prove.by_egraph import proved_by_egraph
from isoform.passes.rules.prove.by_z3 import DEFINED, properties, proved_by_z3
from isoform.passes.rules.prove.verdicts import verify_rule
from isoform.passes.rules.rule import Rule
from isoform.passes.rules.rule_text import parse_rules
from isoform.testing.property_checks import check_property, counterexample, is_implied, wrong_facts

CONV = "dilations=?d, groups={}, pads=?p, strides=?s"
G, H, ONE = CONV.format("?g"), CONV.format("?h"), CONV.format("1")
BOTH = CONV.format("?g + ?h")
CONCAT = (
    f"concat(conv(?x, ?w, {G}), conv(?y, ?v, {H}), axis=1) => "
    f"conv(concat(?x, ?y, axis=1), concat(?w, ?v, axis=0), {BOTH})"
)
TRUE = {
    "matmul-merge": "matmul(?a, ?b), matmul(?a, ?c) => split(matmul(?a, concat(?b, ?c, "
    "axis=?a.rank - 1)), axis=?a.rank - 1, sizes=[?b.shape[-1], ?c.shape[-1]]).0, (same).1",
    "relu-concat": "relu(concat(?a, ?b, axis=?k)) => concat(relu(?a), relu(?b), axis=?k)",
    "add-swap": "add(add(?a, ?b), ?c) => add(add(?a, ?c), ?b)",
    "transposed-product": "matmul(matmul(?a, ?b), ?c, transpose_a=true) => "
    "matmul(matmul(?b, ?a, transpose_a=true, transpose_b=true), ?c)",
}
FALSE = {
    "all-is-one": "add(?a, ?b) => ?a",
    "matmul-commutes": "matmul(?a, ?b) => matmul(?b, ?a)",
    "relu-is-linear": "relu(add(?a, ?b)) => add(relu(?a), relu(?b))",
    "kernels-of-groups": f"conv(?x, concat(?w, ?v, axis=0), {G}) => "
    f"concat(conv(?x, ?w, {G}), conv(?x, ?v, {G}), axis=1)",
    "halves-swapped": "split(concat(?a, ?b, axis=?k), axis=?k, "
    "sizes=[?a.shape[?k], ?b.shape[?k]]).0 => ?b",
}


def rule_of(law: str, *where: str) -> Rule:
    lines = "".join(f"  where {text}\n" for text in where)
    (rule,) = parse_rules(f"rule x\n{lines}  {law}\n")
    return rule


@pytest.mark.parametrize("name", TRUE)
def test_both_provers_prove_what_is_true(name: str) -> None:
    rule = rule_of(TRUE[name])
    assert check_rule(rule, 8).holds
    assert proved_by_z3(rule) and proved_by_egraph(rule)


@pytest.mark.parametrize("name", FALSE)
def test_no_prover_proves_what_is_false(name: str) -> None:
    rule = rule_of(FALSE[name])
    assert not proved_by_z3(rule) and not proved_by_egraph(rule)
    assert verify_rule(rule, 8).rule.proof == "refuted"


def test_a_proof_needs_the_property_it_rests_on() -> None:
    rest = [p for p in properties() if p.name != "relu-of-concat"]
    rule = rule_of(TRUE["relu-concat"])
    assert not proved_by_z3(rule, rest) and not proved_by_egraph(rule, rest)


ENLARGED = "conv(?x, pad(?w, pads=[0, 0, 1, 1, 0, 0, 1, 1]), dilations=[1, 1], groups=?g, "
WRONG_ON_FEW = {
    "enlarged-but-dilated": f"conv(?x, ?w, {G}) => {ENLARGED}"
    "pads=[?p[0] + 1, ?p[1] + 1, ?p[2] + 1, ?p[3] + 1], strides=?s)",
    "groups-of-the-same-image": f"conv(concat(?x, ?x, axis=?k), ?w, ?b, {G}) => "
    f"conv(?x, ?w, ?b, {CONV.format('?g // 2')})",
}


@pytest.mark.parametrize("name", WRONG_ON_FEW)
def test_systematic_instances_refute_what_random_ones_let_pass(name: str) -> None:
    """One is wrong at stride 3 with dilation 2 only, the other with four groups only."""
    assert check_rule(rule_of(WRONG_ON_FEW[name], "x.rank == 4"), 8).wrong is not None


def test_what_z3_may_spend_is_no_matter_of_time() -> None:
    rule = rule_of(TRUE["matmul-merge"])
    assert proved_by_z3(rule) and not proved_by_z3(rule, steps=100)


def two_outputs() -> Rule:
    return rule_of(
        "split(add(concat(?a, ?a, axis=?k), concat(?b, ?c, axis=?k)), axis=?k, sizes=?s).0,\n"
        "  (same).1 => add(?a, ?b), add(?a, ?c)"
    )


def test_two_outputs_that_share_an_operand_are_proved() -> None:
    assert proved_by_z3(two_outputs())


@pytest.mark.slow
def test_steps_count_from_the_first_formula_on() -> None:
    """Before `check`, at a `push`, z3 counts none: it thought of these two outputs for minutes."""
    started = time.process_time()
    assert proved_by_z3(two_outputs())
    assert time.process_time() - started < 20


SAMPLE = [p for k, p in enumerate(properties()) if k % 4 == 0]


@pytest.mark.parametrize("rule", SAMPLE, ids=lambda r: r.name)
def test_a_property_holds_by_execution(rule: Rule) -> None:
    verdict = check_property(rule, 24)
    assert verdict.wrong is None and verdict.instances >= 3


@pytest.mark.slow
@pytest.mark.parametrize("rule", properties(), ids=lambda r: r.name)
def test_every_property_holds_by_execution(rule: Rule) -> None:
    verdict = check_property(rule, 120, seed=1)
    assert verdict.wrong is None and verdict.instances >= 5


def test_facts_hold_by_execution() -> None:
    assert wrong_facts(SAMPLE, 8) == []


def test_a_wrong_property_is_caught() -> None:
    """That a convolution with relu is linear is what TASO's authors warn of."""
    linear = rule_of(
        f"relu(conv(add(?x, ?y), ?w, {G})) => add(relu(conv(?x, ?w, {G})), relu(conv(?y, ?w, {G})))"
    )
    assert check_property(replace(linear, source=DEFINED), 24).wrong is not None
    unguarded = next(p for p in properties() if p.name == "conv-of-input-channels")
    assert check_property(replace(unguarded, where=unguarded.where[:-1]), 200).wrong is not None


def test_redundancy_of_properties_is_told() -> None:
    """What follows from the others is named, what carries a proof of its own is not."""
    by_name = {p.name: p for p in properties()}
    assert is_implied(by_name["transpose-of-identity"], properties())
    assert not is_implied(by_name["conv-of-input-channels"], properties())


# --- the rule that TASO and TENSAT ship and that is wrong ---------------------------------------


def test_concat_of_grouped_convolutions_is_refused_without_its_condition() -> None:
    rule = rule_of(CONCAT)
    window = {"d": (1, 1), "p": (0, 0, 0, 0), "s": (1, 1), "g": 1, "h": 1}
    image = (1, 64, 1, 1)
    shapes = {"x": image, "y": image, "w": (96, 64, 1, 1), "v": (32, 64, 1, 1)}
    found = outcome(rule, {**window, **shapes})
    assert found.left == found.right == ((1, 128, 1, 1),) and not found.equal
    even = {**shapes, "w": (64, 64, 1, 1), "v": (64, 64, 1, 1)}
    assert outcome(rule, {**window, **even}).equal
    assert verify_rule(rule, 40).rule.proof == "refuted"
    assert not proved_by_z3(rule) and not proved_by_egraph(rule)


def test_concat_of_grouped_convolutions_is_proved_with_its_condition() -> None:
    per_group = "w.shape[0] * h == v.shape[0] * g"
    same = [f"{a}.shape[{k}] == {b}.shape[{k}]" for a, b in ("xy", "wv") for k in (2, 3)]
    rule = rule_of(CONCAT, *same, "x.shape[1] == w.shape[1] * g", per_group)
    verdict = verify_rule(rule, 12)
    assert verdict.rule.proof.startswith("proved")
    assert counterexample(rule, per_group) is not None
