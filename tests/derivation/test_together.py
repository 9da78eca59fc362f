"""Contractions of one operand are derived alone, and merged where their forms meet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from isoform.compiler.targets.levels import run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program, keep_names, pipeline_of
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation import together
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.propose import PAIR, merged, search
from isoform.passes.derivation.search import DerivationResult, Searcher, Stop
from isoform.passes.derivation.together import search_together
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.prove import Prover
from isoform.passes.search_result import Limits
from isoform.passes.subprograms.decisions import Decision
from isoform.passes.subprograms.find import Subprogram, groups
from isoform.passes.subprograms.prepare import prepared
from isoform.passes.subprograms.selection import chosen_occurrences

H100 = Costs(target_named("h100"))


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions are remembered in a folder of the test's own."""
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))


@dataclass(frozen=True)
class Branch:
    """A convolution of the input.

    Attributes:
        taps: of the window, in each dim.
    """

    filters: int
    taps: Sequence[int]
    strides: Sequence[int] = ()
    dilations: Sequence[int] = ()
    bias: bool = False
    relu: bool = False


def branches(shape: Sequence[int], *made: Branch) -> Program:
    """Convolutions of one input, with padding that keeps its extents (odd windows, stride 1)."""
    b = GraphBuilder()
    x = b.input("x", tuple(shape))
    rng = np.random.default_rng(0)

    def weight(name: str, *extents: int) -> object:
        drawn = rng.standard_normal(extents).astype(np.float32)
        return b.weight(name, lambda: drawn, extents, f32)

    for k, branch in enumerate(made):
        ones = [1] * len(branch.taps)
        dilations = list(branch.dilations) or ones
        pads = [(n - 1) * d // 2 for n, d in zip(branch.taps, dilations, strict=True)]
        operands = [x, weight(f"w{k}", branch.filters, shape[1], *branch.taps)]
        operands += [weight(f"b{k}", branch.filters)] if branch.bias else []
        strides = list(branch.strides) or ones
        y = b.conv(*operands, strides=strides, pads=[*pads, *pads], dilations=dilations)
        b.output(f"y{k}", b.relu(y) if branch.relu else y)
    return b.build()


def found(program: Program, costs: Costs = H100) -> list[DerivationResult]:
    """What is found for each group of contractions of a program."""
    subs = groups(prepared(program).module, lambda known: ScopePrices(known, costs=costs))
    tables = [ScopePrices(sub.known, costs=costs) for sub in subs]
    return [
        search_together(Searcher(table, PAIR), sub.roots)
        for sub, table in zip(subs, tables, strict=True)
    ]


FIGURE_3A = branches((1, 64, 7, 7), Branch(64, (3, 3), relu=True), Branch(64, (1, 1), relu=True))

MERGING = {
    "3x3 and 1x1, EinNet's Figure 3a": FIGURE_3A,
    "3x3 and 5x5": branches((1, 128, 8, 8), Branch(64, (3, 3)), Branch(64, (5, 5))),
    "1-D, coprime": branches((1, 257, 63), Branch(255, (3,)), Branch(94, (1,))),
    "1-D, 7 and 5 taps": branches((1, 64, 33), Branch(15, (7,)), Branch(64, (5,), bias=True)),
    "3-D": branches((1, 16, 5, 6, 7), Branch(8, (3, 3, 3)), Branch(24, (1, 1, 1))),
    "a shortcut of stride 2": branches(
        (1, 64, 15, 15),
        Branch(64, (3, 3), strides=(2, 2), bias=True, relu=True),
        Branch(64, (1, 1), strides=(2, 2), bias=True),
    ),
    "batch 3": branches((3, 32, 9, 9), Branch(33, (3, 3)), Branch(10, (1, 1))),
    "three dilations": branches(
        (1, 64, 17, 17), *(Branch(16, (3, 3), dilations=(d, d), relu=True) for d in (2, 4, 6))
    ),
    "four branches": branches(
        (1, 48, 11, 13), *(Branch(n, (k, k)) for n, k in ((12, 1), (16, 3), (7, 5), (5, 1)))
    ),
    "lines across": branches((1, 32, 9, 9), Branch(16, (1, 5)), Branch(16, (5, 1))),
}


@pytest.mark.parametrize("name", MERGING)
def test_branches_become_one_product(name: str) -> None:
    """Every group, proved, in fewer than 1,000 programs; all branches as one gain."""
    program = MERGING[name]
    results = found(program)
    most = max(len(result.root.state.roots) for result in results)
    for result in results:
        assert len(result.states) < 1000
        best = result.best[0]
        assert merged([best])
        if len(best.state.roots) == most:
            assert best.priced.seconds < result.root.priced.seconds
        for given, root in zip(result.root.state.roots, best.state.roots, strict=True):
            assert Prover().prove(given, root).equal is True


def test_a_merged_program_replays_as_passes() -> None:
    program = FIGURE_3A
    result = search(program, H100, Limits(60.0))
    rules = {applied.rule for applied in result.applied}
    assert "derive merge-rows" in rules, rules
    assert {a.proof for a in result.applied} == {"exact"}
    assert compare(program, result.program).is_equal
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline_of(result.program.module))
    assert compare(again, result.program).is_equal


def test_phases_of_a_dilated_image_are_merged() -> None:
    """Digits of rows and columns stand in one index, and only their coefficients differ."""
    dilated = {"taps": (3, 3), "dilations": (2, 2)}
    program = branches((1, 16, 10, 10), Branch(8, **dilated), Branch(12, **dilated))
    (result,) = found(program)
    split = ["split-traversals", "split-traversals", "merge-shared-operand"]
    (state, *_) = [s for s in result.states if s.rules() == split]
    for given, root in zip(result.root.state.roots, state.roots, strict=True):
        assert Prover().prove(given, root).equal is True


def decided(names: str, before: float, after: float) -> tuple[Subprogram, Decision]:
    """A decision for contractions at one place; only what choosing reads is there."""
    sub = Subprogram(tuple(names), (), before, [tuple(names)])  # pyright: ignore
    trail = ((names, ""),) if after < before else None
    return sub, Decision(trail, after, before, after, "measured", "finished")


@pytest.mark.parametrize(("pair", "by_saving", "by_time"), [(1.5, "ab", "ab"), (1.7, "", "ab")])
def test_together_or_apart_is_chosen_by_saving_or_by_time(
    pair: float, by_saving: str, by_time: str
) -> None:
    """Apart they were measured to take 3 and then 2 seconds, together 2.6 and then `pair`."""
    all_of_them = [decided("a", 1.5, 1.0), decided("b", 1.5, 1.0), decided("ab", 2.6, pair)]
    for wanted, by_time_left in ((by_saving, False), (by_time, True)):
        chosen = chosen_occurrences(all_of_them, {}, by_time_left)
        assert ["".join(c.names) for c in chosen] == ([wanted] if wanted else ["a", "b"])


@pytest.mark.parametrize("target", ["cpu", "h100"])
def test_no_merged_program_takes_less_than_its_bound(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs of forms are left out by this bound."""
    checked = below = 0
    meeting = together._Meeting  # pyright: ignore[reportPrivateUsage]
    joined, least = meeting._joined, meeting._least  # pyright: ignore[reportPrivateUsage]

    def watched(self: Any, a: Any, b: Any, number: int) -> list[Any]:
        nonlocal checked, below
        made = joined(self, a, b, number)
        checked += len(made)
        below += sum(form.seconds < least(self, a, b) * (1 - 1e-9) for form in made)
        return made

    monkeypatch.setattr(meeting, "_joined", watched)
    monkeypatch.setattr(together, "SPREAD", 1e9)
    monkeypatch.setattr(together, "BEAM", 10**6)
    monkeypatch.setattr(together, "TRIES", 500)
    for name in ("1-D, 7 and 5 taps", "lines across", "a shortcut of stride 2", "3-D"):
        found(MERGING[name], Costs(target_named(target)))
    assert checked > 30
    assert below == 0


def test_the_bound_leaves_out_what_is_not_tried() -> None:
    """With a bound of nothing every pair of forms is tried."""
    few = sum(len(r.states) for r in found(FIGURE_3A))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together._Meeting, "_least", lambda *_: 0.0)  # pyright: ignore[reportPrivateUsage]
        many = sum(len(r.states) for r in found(FIGURE_3A))
    assert few <= many


def test_few_tries_are_said_in_the_result() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "TRIES", 1)
        (result,) = found(FIGURE_3A)
    assert result.stop is Stop.STATES


def test_a_limit_of_states_is_shared_by_the_roots() -> None:
    subs = groups(prepared(FIGURE_3A).module, lambda known: ScopePrices(known, costs=H100))
    (sub,) = subs
    settings = replace(PAIR, states=20)
    result = search_together(Searcher(ScopePrices(sub.known, costs=H100), settings), sub.roots)
    assert result.stop is Stop.STATES
    assert len(result.states) < 40
