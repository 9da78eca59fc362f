"""The search finds what the rules lead to, and what it finds is the same program.

The rules are written by hand for these tests (by_hand.rules); what ships comes from the generator.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.clock import clock_of_calls

from isoform.compiler import api, zoo
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.equivalence import compare
from isoform.passes.rules.rule import Rule
from isoform.passes.rules.rule_set import rules_named
from isoform.passes.rules.rule_text import parse_rules
from isoform.passes.search_result import Limits, SearchResult
from isoform.passes.substitution.layouts import unfold_transposes
from isoform.passes.substitution.search import (
    SubstitutionSettings,
    both_ways,
    search,
    search_block,
)

BY_HAND = rules_named(str(Path(__file__).parent / "by_hand.rules"))
SMALL_BERT: dict[str, Any] = {"sequence": 16, "layers": 1, "hidden": 64, "heads": 4}
SWAPPED = """
rule outputs-swapped
  floats rounding
  matmul(?a, ?b, transpose_b=true), matmul(?a, ?c, transpose_b=true) =>
    split(matmul(?a, concat(?b, ?c, axis=0), transpose_b=true), axis=1,
      sizes=[?b.shape[0], ?c.shape[0]]).1,
    (same).0
"""


def searched(
    name: str, rules: tuple[Rule, ...], sizes: dict[str, Any]
) -> tuple[Program, SearchResult]:
    """A small zoo model, and what is found for it by modelled costs of a GPU."""
    program = api.improve(zoo.build(name, **sizes))
    settings = SubstitutionSettings((), 1.05, 40)
    costs = Costs(target_named("h100"))
    result = search(program, costs, Limits(60.0), rules=rules, settings=settings)
    assert result.stop_reason != "time"
    return program, result


@pytest.mark.parametrize(
    ("name", "sizes", "rule"),
    [
        ("tensat-bert", SMALL_BERT, "matmul-merge-shared-left"),
        ("nasrnn", {"steps": 2, "width": 32}, "matmul-merge-shared-left"),
    ],
)
def test_what_is_found_costs_less_and_is_the_same(
    name: str, sizes: dict[str, Any], rule: str
) -> None:
    program, result = searched(name, BY_HAND, sizes)
    costs = Costs(target_named("h100"))
    assert costs.program(result.program).seconds < costs.program(program).seconds
    assert rule in {applied.rule for applied in result.applied}
    result.program.module.verify()
    assert compare(program, result.program).is_equal


def test_a_wrong_rule_is_caught_by_the_comparison() -> None:
    program, result = searched("tensat-bert", parse_rules(SWAPPED), SMALL_BERT)
    assert result.applied
    assert compare(program, result.program).kind == "different"


def test_the_same_input_gives_the_same_text() -> None:
    texts = {
        str(searched("nasrnn", BY_HAND, {"steps": 2, "width": 32})[1].program.module)
        for _ in range(3)
    }
    assert len(texts) == 1


def test_the_time_limit_holds_within_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round alone is 2^7 ways through seven sums, from each of some hundreds."""
    build = GraphBuilder()
    sums = [build.input("x", (2,)), build.input("y", (2,))]
    for _ in range(400):
        sums.append(build.add(sums[-1], sums[-2]))
    build.output("z", sums[-1])
    rules = parse_rules(
        "rule turn\n  add(?a, add(?b, add(?c, add(?d, add(?e, add(?f, add(?g, ?h))))))) =>\n"
        "    add(?a, add(?b, add(?c, add(?d, add(?e, add(?f, add(?h, ?g)))))))\n"
    )
    program, costs = build.build(), Costs(target_named("cpu"))
    with clock_of_calls(monkeypatch):
        result = search(program, costs, Limits(0.5), rules=rules)
        spent = time.perf_counter()
    assert result.stop_reason == "time"
    assert spent < 5


def test_what_no_rule_can_be_used_for_is_told_once_a_reason() -> None:
    law = "rule r{}\n  {}(?a) => ?a\n"
    rules = parse_rules("".join(law.format(k, f"nothing{k % 2}") for k in range(6)))
    _, result = searched("tensat-bert", rules, SMALL_BERT)
    (first, second) = [r for r in result.rejected if "no op '" in r.reason]
    assert first.rule == "r0" and first.reason.endswith("so it is with 2 other rules")
    assert second.rule == "r1"


def test_nothing_to_gain_gives_the_input_back() -> None:
    program, result = searched("tensat-bert", (), SMALL_BERT)
    assert result.applied == []
    assert result.program.module.is_structurally_equivalent(program.module)


def test_a_search_with_patience_ends_some_programs_after_the_best() -> None:
    block = api.improve(zoo.build("nasrnn", steps=2, width=32)).main.body.block
    unfold_transposes(block)
    settings = SubstitutionSettings(both_ways(BY_HAND), 1.05, 60)
    impatient = replace(settings, patience=5)
    costs = Costs(target_named("h100"))
    whole, ended = (search_block(block, costs, Limits(60.0), s)[0] for s in (settings, impatient))
    assert (whole.taken, ended.stop_reason) == (60, "steps")
    assert ended.taken == ended.curve[-1][1] + 6 < 60
