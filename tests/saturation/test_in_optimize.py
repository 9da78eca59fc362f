"""Saturation in `optimize`: nothing is done where no rule matches, or none gained before."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.cost_file import CostFile
from isoform.passes.cost.costs import Costs
from isoform.passes.equivalence import compare
from isoform.passes.rules.rule_text import parse_rules
from isoform.passes.saturation import search as engine
from isoform.passes.saturation.strategy import search
from isoform.passes.search_result import Limits, SearchResult
from isoform.passes.work_clock import counted

COSTS = Costs(target_named("cpu"))
LIMITS = Limits(30.0)


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))


def products(count: int) -> Program:
    """A row of products with weights, nothing between them."""
    b = GraphBuilder()
    x = b.input("x", (64, 64))
    for k in range(count):
        w = np.random.default_rng(k).standard_normal((64, 64)).astype(np.float32)
        x = b.matmul(x, b.weight(f"w{k}", w))
    b.output("y", x)
    return b.build()


def test_products_of_weights_are_computed_with_the_weights() -> None:
    program = products(3)
    result = search(program, COSTS, LIMITS)
    assert compare(program, result.program).is_equal
    assert {a.proof for a in result.applied} <= {"proved-by-z3", "proved-by-e-graph"}
    before, after = (COSTS.program(p).seconds for p in (program, result.program))
    assert after < before / 2


def test_where_no_rule_matches_nothing_is_saturated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(engine, "saturate_block")
    monkeypatch.setitem(sys.modules, "egglog", None)
    b = GraphBuilder()
    b.output("y", b.softmax(b.input("x", (4, 8)), axis=1))
    program = b.build()
    result = search(program, COSTS, LIMITS)
    assert [r.reason.partition(" of ")[0] for r in result.rejected] == ["none"]
    assert result.program.module.is_structurally_equivalent(program.module)


def test_a_search_without_gain_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    program = products(1)
    first = search(program, COSTS, LIMITS)
    assert (first.applied, first.stop_reason) == ([], "finished")
    calls: list[int] = []
    saturate = engine.saturate_block

    def counted(*given):  # type: ignore[no-untyped-def]
        calls.append(1)
        return saturate(*given)

    monkeypatch.setattr(engine, "saturate_block", counted)
    again = search(program, COSTS, LIMITS)
    assert (again.applied, again.stop_reason, calls) == ([], "finished", [])
    slower = Costs(replace(COSTS.target, bandwidth=1e9))
    search(program, slower, LIMITS)
    assert calls == [1], "another target is another question"
    scaled = Costs(COSTS.target, CostFile("cpu", class_scale={"gemm": 2.0}))
    search(program, scaled, LIMITS)
    assert calls == [1, 1], "so is what a cost file says"


@pytest.mark.parametrize(
    ("law", "left"),
    [
        ("max(?a, min(?a, ?b)) => ?a", 0),
        ("max(?a, max(?a, ?b)) => max(?a, ?b)", 1),  # the op that stays has the same head
    ],
)
def test_a_gain_without_a_new_op_is_found_again_and_names_its_rule(law: str, left: int) -> None:
    b = GraphBuilder()
    x, y = b.input("x", (4, 8)), b.input("y", (4, 8))
    b.output("z", b.max(x, (b.max if left else b.min)(x, y)))
    program = b.build()
    rules = parse_rules(f"rule absorbs [checked-only; bits]: {law}")
    limits = replace(LIMITS, rules=rules)
    for _ in range(2):
        found = search(program, COSTS, limits)
        assert sum(op.name == "graph.max" for op in found.program.main.walk()) == left
        assert "absorbs" in {one.rule for one in found.applied}


def test_a_value_in_place_of_a_later_part_of_a_split_names_its_rule() -> None:
    b = GraphBuilder()
    x, y = b.input("x", (4, 8)), b.input("y", (4, 8))
    b.output("z", b.relu(b.split(b.concat(x, y, axis=1), axis=1, sizes=[8, 8])[1]))
    found = search(b.build(), COSTS, LIMITS)
    assert not any(op.name == "graph.split" for op in found.program.main.walk())
    assert "second-of-split-of-concat" in {one.rule for one in found.applied}


def test_generated_rules_go_on_from_what_laws_found(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[int, float]]()
    saturate = engine.search

    def noted(program: Program, costs: Costs, limits: Limits, **more: object) -> SearchResult:
        asked.append((sum(1 for _ in program.main.body.block.ops), limits.seconds))
        return saturate(program, costs, limits, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "search", noted)
    result = search(products(3), COSTS, LIMITS)
    assert "then" in result.looked_at and result.applied
    (before, first), (after, second) = asked
    assert after == sum(1 for _ in result.program.main.body.block.ops) and before <= after + 2
    assert first == LIMITS.seconds / 2 and second <= LIMITS.seconds / 4


def test_no_rule_set_begins_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[float]()

    def interrupted(program: Program, costs: Costs, limits: Limits, **_: object) -> SearchResult:
        asked.append(limits.seconds)
        return SearchResult(program.clone(), "interrupted")

    monkeypatch.setattr(engine, "search", interrupted)
    assert search(products(3), COSTS, LIMITS).stop_reason == "interrupted"
    assert len(asked) == 1


def factored() -> Program:
    """x @ y + x @ z, which is x @ (y + z)."""
    b = GraphBuilder()
    x, y, z = (b.input(name, (256, 256)) for name in "xyz")
    b.output("w", b.add(b.matmul(x, y), b.matmul(x, z)))
    return b.build()


def test_the_curve_goes_on_where_the_clock_of_limits_leaps() -> None:
    with counted(time.perf_counter() + 0.2):  # the budget ends within the search
        times = [t for t, *_ in search(factored(), COSTS, LIMITS).curve]
    assert len(times) > 2 and times == sorted(times) and times[-1] < 1e6


def test_a_rewrite_tells_the_forms_that_the_e_graph_holds_equal() -> None:
    result = search(factored(), COSTS, LIMITS)
    *_, (own_class, *others) = (a.equal for a in result.applied if a.rule == "matmul-of-add")
    classes = {c["value"]: c["forms"] for c in others}
    (chosen,) = (form for form in own_class["forms"] if form["chosen"])
    assert chosen["ir"].startswith("graph.matmul %x, %e") and chosen["rule"] == "matmul-of-add"
    (own,) = (form for form in own_class["forms"] if not form["rule"])
    assert own["ir"].startswith("graph.add %e") and not own["chosen"]
    (read,) = (c for c in classes if c in chosen["ir"])
    assert {form["ir"].partition(" :")[0] for form in classes[read]} == {
        "graph.add %y, %z",
        "graph.add %z, %y",
    }
