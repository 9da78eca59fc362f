"""Whole programs are mutated where it gains, and their results are what they were."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoform.compiler import api
from isoform.compiler.targets.levels import lower_to, run_passes
from isoform.dialects import reference
from isoform.dialects.algebra import ScopeOp
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program, keep_names, pipeline_of, provenance
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.equivalence import compare
from isoform.passes.margins import PRUNE_MUTATION
from isoform.passes.partial import propose
from isoform.passes.partial.alternatives import renumbered
from isoform.passes.partial.chains import neighbours
from isoform.passes.partial.correct import Correction
from isoform.passes.partial.generate import Mutant
from isoform.passes.partial.search import Candidate
from isoform.passes.search_result import Limits, Measure, SearchResult
from isoform.testing.derivation_cases import conv

# What else the machine does must not decide a test.
LIMITS = Limits(36_000.0)


def search(
    program: Program, costs: Costs, measure: Measure | None = None, **settings: Any
) -> SearchResult:
    """Mutate without a clock."""
    asked = replace(propose.MutationSettings(seconds=18_000.0), **settings)
    return propose.search(program, costs, LIMITS, measure, asked)


@pytest.fixture(autouse=True)
def own_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions are remembered in a folder of the test's own."""
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path / "own"))


def dilated(count: int = 2, size: int = 14, channels: int = 128) -> Program:
    """Dilated convolutions in a row, each with a bias and relu."""
    rng = np.random.default_rng(7)
    b = GraphBuilder()
    x = b.input("x", (1, channels, size, size))
    for k in range(count):
        w = b.weight(f"w{k}", rng.standard_normal((channels, channels, 3, 3)).astype("f") / 30)
        bias = b.weight(f"b{k}", rng.standard_normal(channels).astype("f"))
        window = {"strides": [1, 1], "pads": [2] * 4, "dilations": [2, 2]}
        x = b.relu(b.conv(x, w, bias, **window))
    b.output("y", x)
    return b.build("dilated")


@pytest.fixture(scope="module")
def mutated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, Program]:
    """A program and what is made of it, by modelled costs of a GPU."""
    program = dilated()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISOFORM_CACHE", str(tmp_path_factory.mktemp("mutated")))
        result = search(program, Costs(target_named("v100")))
    assert {a.rule for a in result.applied} == {"mutate"}
    return program, result.program


def test_dilated_convolutions_become_regular_with_one_view_between(
    mutated: tuple[Program, Program],
) -> None:
    """PET, Figure 11(b): the views of neighbours cancel across bias and relu."""
    scopes = [o for o in mutated[1].main.body.block.ops if isinstance(o, ScopeOp)]
    copies = [
        o for o in scopes if len(o.operands) == 1 and not o.summation and "floordiv" in str(o)
    ]
    assert len(copies) == 2
    assert sum(bool(o.summation) for o in scopes) == 2
    assert any("mutate" in provenance(o) for o in scopes)


def test_the_result_is_the_same_program(mutated: tuple[Program, Program]) -> None:
    program, better = mutated
    assert compare(lower_to(program, "algebra"), better).kind == "equal"
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 128, 14, 14)).astype("f")}
    expected = reference.run(program, feeds)["y"]
    (found,) = api.compile(better, threads=1).run(None, feeds)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


def test_the_recorded_pipeline_reproduces_the_program(mutated: tuple[Program, Program]) -> None:
    program, better = mutated
    pipeline = pipeline_of(better.module)
    assert pipeline.count('mutant="input') == 2
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline)
    assert plain(again) == plain(better)


def plain(program: Program) -> str:
    """The text without the pipeline that made it."""
    copy = program.clone()
    copy.module.attributes.pop("isoform.pipeline", None)
    return str(copy.module)


def test_a_mutant_without_gain_is_declined_with_a_reason() -> None:
    program = dilated(size=6, channels=4, count=1)
    result = search(program, Costs(target_named("v100")))
    assert result.applied == []
    assert result.program.module.is_structurally_equivalent(program.module)
    assert all("mutant" in r.reason or "share" in r.reason for r in result.rejected)
    assert result.rejected


def test_a_spent_budget_is_reported() -> None:
    result = propose.search(dilated(), Costs(target_named("v100")), Limits(0.0))
    assert (result.stop_reason, result.applied) == ("time", [])


def test_a_decision_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(target_named("v100"))
    first = search(dilated(1), costs)

    def again(*_: object) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr(propose, "search_mutants", again)
    same = search(dilated(1), costs)
    assert first.applied and same.applied == first.applied
    assert str(same.program.module) == str(first.program.module)
    with pytest.raises(AssertionError, match="searched again"):
        search(dilated(1), costs, depth=3)


def test_what_runs_at_the_peak_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mutants have a Winograd form: a quarter of the operations, at the peak, is the bound."""
    costs = Costs(target_named("cpu"))
    operations = 2 * 9 * 128 * 128 * (14 * 14 * (1 - 2 * 2 / (3 * 14)) ** 2)
    quarter = operations / 4 / costs.target.rate("f32")
    for factor, searched in ((1.0, "0 searched"), (2.0, "1 searched")):
        monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path / searched))

        def measure(programs: Sequence[Program], seconds: float) -> list[float]:
            if programs[0].source != "subprogram":  # the product that shows the machine's peak
                return [1.0]
            return [factor * quarter] * len(programs)  # noqa: B023

        result = search(dilated(count=1), costs, measure)
        assert f": {searched}" in result.looked_at
        assert result.applied == []


def test_a_contraction_without_a_price_hides_no_other() -> None:
    """The first sums over m in one operand alone: no library has it, and loops have no price."""
    text = """
func.func @main(%a: tensor<64x64x8xf32>, %b: tensor<64x64xf32>, %x: tensor<1x128x14x14xf32>)
    -> (tensor<64x64xf32>, tensor<1x128x14x14xf32>) {
  %k = graph.weight @k : tensor<128x128x3x3xf32>
  %t = algebra.scope (i: 64, j: 64) sum (l: 64, m: 8) %a[i, l, m] * %b[l, j] : tensor<64x64xf32>
  %y = algebra.scope (n: 1, f: 128, h: 14, w: 14) sum (c: 128, r: 3, s: 3)
         %x[n, c, h + 2 * r - 2, w + 2 * s - 2] * %k[f, c, r, s] : tensor<1x128x14x14xf32>
  func.return %t, %y : tensor<64x64xf32>, tensor<1x128x14x14xf32>
}
"""
    result = search(api.parse(text), Costs(target_named("v100")))
    assert any(a.rule == "mutate" for a in result.applied)


@pytest.mark.parametrize(
    ("method", "proof"),
    [("symbolic, shrunk", "exact"), ("structural", "exact"), ("field, full", "checked")],
)
def test_a_proof_by_residues_is_not_called_exact(method: str, proof: str) -> None:
    correction = Correction(conv((1, 1, 3, 3), 1, (1, 1)), ())
    mutant = Mutant(lambda _: correction.result, (), (), (), 0, 1.0)
    assert Candidate(mutant, (correction,), (method,), 0.0).proof == proof


def branches(features: tuple[int, ...]) -> Program:
    """1x1 convolutions of one input, as at the head of Inception's branches."""
    rng = np.random.default_rng(3)
    b = GraphBuilder()
    x = b.input("x", (1, 256, 18, 18))
    for k, count in enumerate(features):
        w = b.weight(f"w{k}", rng.standard_normal((count, 256, 1, 1)).astype("f") / 16)
        b.output(f"y{k}", b.relu(b.conv(x, w, strides=[1, 1], pads=[0] * 4, dilations=[1, 1])))
    return b.build("branches")


def test_branches_of_one_input_become_one_convolution() -> None:
    """PET, Table 3: the group of 1x1 convolutions of Inception-v3."""
    program = branches((48, 48, 40))
    result = search(program, Costs(target_named("v100")))
    assert [a.place.count(" with ") for a in result.applied] == [2]
    better = result.program
    products = [o for o in better.main.body.block.ops if isinstance(o, ScopeOp) and o.summation]
    assert len(products) == 1
    assert compare(lower_to(program, "algebra"), better).kind == "equal"
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline_of(better.module))
    assert plain(again) == plain(better)


def added(channels: int, features: int) -> Program:
    """The sum of two 1x1 convolutions of inputs of their own, each with a bias."""
    rng = np.random.default_rng(5)
    b = GraphBuilder()
    parts = []
    for k in range(2):
        x = b.input(f"x{k}", (1, channels, 28, 28))
        w = b.weight(f"w{k}", rng.standard_normal((features, channels, 1, 1)).astype("f") / 8)
        bias = b.weight(f"b{k}", rng.standard_normal(features).astype("f"))
        parts.append(b.conv(x, w, bias, strides=[1, 1], pads=[0] * 4, dilations=[1, 1]))
    b.output("y", b.relu(b.add(*parts)))
    return b.build("added")


def test_a_sum_of_convolutions_becomes_one_where_that_gains() -> None:
    """PET, Figure 10, from the whole search: the sum is neither written nor read again."""
    costs = Costs(target_named("v100"))
    program = added(32, 512)
    result = search(program, costs)
    assert [(a.place, a.proof) for a in result.applied if ".sum" in a.place]
    better = result.program
    products = [o for o in better.main.body.block.ops if isinstance(o, ScopeOp) and o.summation]
    assert len(products) == 1
    assert compare(lower_to(program, "algebra"), better).kind == "equal"
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline_of(better.module))
    assert plain(again) == plain(better)
    wide = added(512, 32)  # there the copy of the images takes more than the sum did
    assert not any(".sum" in a.place for a in search(wide, costs).applied)


def test_neighbours_are_found_across_elementwise_scopes_only() -> None:
    module = api.parse("""
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = algebra.scope (m: 8, n: 8) sum (k: 8) %x[m, k] * %w[k, n] : tensor<8x8xf32>
  %b = algebra.scope (m: 8, n: 8) max(%a[m, n], 0.0) : tensor<8x8xf32>
  %c = algebra.scope (m: 8, n: 8) sum (k: 8) %b[m, k] * %w[k, n] : tensor<8x8xf32>
  %d = algebra.scope (m: 8, n: 8) sum (k: 8) %c[m, k] * %w[k, n] : tensor<8x8xf32>
  func.return %d : tensor<8x8xf32>
}
""").module
    assert neighbours(module) == {"a": {"c"}, "c": {"a", "d"}, "d": {"c"}}


def test_a_name_of_a_mutant_does_not_depend_on_the_order_of_operands() -> None:
    name = "input 1, move d2 mod 2 into d0 major | input 0 | conv"
    assert renumbered(name) == "input 0, move d2 mod 2 into d0 major | input 1 | conv"
    assert renumbered(renumbered(name)) == name


@pytest.mark.slow
def test_a_small_contraction_is_mutated_with_its_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside one that is mutated alike its views cost nothing: cheaper, so it comes first."""
    monkeypatch.setattr(propose, "PRUNE_MUTATION", replace(PRUNE_MUTATION, share=0.4))
    rng = np.random.default_rng(7)
    b = GraphBuilder()
    x = b.input("x", (1, 128, 14, 14))
    for k, features in enumerate((128, 16)):
        w = b.weight(f"w{k}", rng.standard_normal((features, 128, 3, 3)).astype("f") / 30)
        x = b.relu(b.conv(x, w, strides=[1, 1], pads=[2] * 4, dilations=[2, 2]))
    b.output("y", x)
    program = b.build("uneven")
    result = search(program, Costs(target_named("v100")))
    assert result.looked_at.startswith("2 subprograms: 1 searched")
    assert "1 too small" in result.looked_at
    assert [a.rule for a in result.applied] == ["mutate", "mutate"]
    (shorter,) = result.alternatives
    for better, count in ((result.program, 2), (shorter, 1)):
        assert pipeline_of(better.module).count("dilation 1 groups 1 same") == count
        assert compare(lower_to(program, "algebra"), better).kind == "equal"


def test_where_no_mutant_gains_several_rounds_still_derive() -> None:
    """Winograd's tiles fit the images as they are; as a product of all taps it is cheaper."""
    rng = np.random.default_rng(7)
    b = GraphBuilder()
    x = b.input("x", (1, 256, 16, 16))
    w = b.weight("w", rng.standard_normal((32, 256, 3, 3)).astype("f") / 48)
    b.output("y", b.relu(b.conv(x, w, strides=[1, 1], pads=[1] * 4, dilations=[1, 1])))
    program, costs = b.build("regular"), Costs(target_named("v100"))
    assert "1 cannot gain" in search(program, costs).looked_at
    several = search(program, costs, rounds=2)
    assert "0 searched, 1 only derived" in several.looked_at
    assert [a.rule.partition(" ")[0] for a in several.applied] == ["derive"]
    assert compare(lower_to(program, "algebra"), several.program).kind == "equal"
