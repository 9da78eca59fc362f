"""What saturation with the shipped laws finds of the programs of the expert bar."""

from __future__ import annotations

import pytest
from support.search_programs import ORIGINALS

import isoform
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import load_costs
from isoform.passes.equivalence import compare
from isoform.passes.rules.rule_set import rules_named
from isoform.passes.rules.rule_text import parse_rules
from isoform.passes.saturation.search import search
from isoform.passes.search_result import Limits

# How many times as long as the expert's a result may be modelled to take.
BAR = 1.02
FOUND = (
    "conv1d_shared",
    "conv2d_shared_same",
    "conv3d_shared",
    "conv_conv1x1",
    "distr_sub",
    "inverse_transpose",
    "k13",
    "lin_attn",
    "lora",
    "lstm",
    "m_fig10a",
    "qkv3d",
    "qkv_bias",
    "qkv_gqa",
    "reduce_after_mm",
    "repvgg",
    "scale_mm",
    "slice_concat",
    "slice_mm",
    "swiglu",
)


@pytest.mark.parametrize("name", FOUND)
def test_laws_lead_to_what_an_expert_writes(name: str) -> None:
    """Modelled on an h100; where the expert's program is the original, that is kept or beaten."""
    before = isoform.load(ORIGINALS / f"{name}.mlir")
    expert = isoform.load(ORIGINALS.parent / "expert" / f"{name}.mlir")
    costs = load_costs(target_named("h100"))
    result = search(before, costs, Limits(20.0), rules=rules_named("laws"))
    assert result.stop_reason == "finished"
    bound = min(costs.program(p).seconds for p in (before, expert))
    assert costs.program(result.program).seconds <= BAR * bound
    verdict = compare(before, result.program, seed=0, budget=30.0)
    assert verdict.kind == "equal", verdict.text()


def test_a_slice_of_one_element_is_not_taken_of_itself() -> None:
    """Its steps would double with each round, past 64 bits."""
    build = isoform.GraphBuilder()
    x = build.input("x", (4, 1))
    first = build.slice(x, starts=[0, 0], sizes=[2, 1], steps=[2, 2])
    build.output("y", build.slice(first, starts=[0, 0], sizes=[2, 1], steps=[1, 2]))
    costs = load_costs(target_named("h100"))
    result = search(build.build(), costs, Limits(20.0), rules=rules_named("laws"))
    assert result.stop_reason == "finished"
    assert str(result.program.module).count("graph.slice") == 1


def test_a_rule_that_counts_past_64_bits_is_refused_there() -> None:
    build = isoform.GraphBuilder()
    x = build.input("x", (4, 3))
    build.output("y", build.slice(x, starts=[1, 1], sizes=[1, 1], steps=[1, 1]))
    part = "slice(?x, starts=?s, sizes=?z, steps="
    law = f"{part}?t) => {part}?t * ?t * 4)"
    costs = load_costs(target_named("h100"))
    result = search(
        build.build(),
        costs,
        Limits(20.0),
        rules=parse_rules(f"rule longer [checked-only; bits]: {law}"),
    )
    assert result.stop_reason in ("finished", "steps")
    assert "64 bits" in str(result.rejected)
