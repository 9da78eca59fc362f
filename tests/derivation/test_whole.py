"""Whole programs: split, searched once each, measured, remembered, and never made slower."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.parser import Parser

from isoform.compiler.levels import run_passes
from isoform.compiler.registry import make_context
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.canonical_types import Read
from isoform.dialects.errors import UserError
from isoform.dialects.index import Index
from isoform.dialects.program import Program, keep_names, main_of, pipeline_of
from isoform.lowering.kernel_to_cpu.cache_folder import CacheFolder
from isoform.lowering.targets import target_named
from isoform.passes.cost import Costs
from isoform.passes.derivation import choose, whole
from isoform.passes.derivation.body import build
from isoform.passes.derivation.derive import Done
from isoform.passes.derivation.isolate import isolate
from isoform.passes.derivation.lift import Lift, scope_ops
from isoform.passes.derivation.price import Prices
from isoform.passes.derivation.remembered import Decision, Remembered
from isoform.passes.derivation.search import Found, Searcher
from isoform.passes.derivation.whole import prepared, search, split
from isoform.passes.equivalence import compare
from isoform.passes.search_result import Limits, SearchResult
from isoform.passes.weights_only import weights_only

COSTS = Costs(target_named("cpu"))


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions are remembered in a folder of the test's own, and searches are short."""
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))
    monkeypatch.setattr(whole, "SETTINGS", replace(whole.SETTINGS, states=60, keep=3))


def network(branches: int = 1) -> Program:
    """Transposed convolutions of one shape, side by side, each read by a relu."""
    b = GraphBuilder()
    for k in range(branches):
        x = b.input(f"x{k}", (4, 16, 2, 2))
        kernel = b.weight(f"k{k}", lambda: np.ones((16, 8, 4, 4), np.float32), (16, 8, 4, 4), f32)
        window = {"strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
        y = b.conv_transpose(x, kernel, output_padding=[0, 0], **window)
        b.output(f"y{k}", b.relu(y))
    return b.build()


def times(*wanted: float) -> whole.Measure:
    """A measurement that gives these seconds, one for each program, the last for the others."""

    def measure(programs: Sequence[Program], seconds: float) -> list[float]:
        return [wanted[min(k, len(wanted) - 1)] for k in range(len(programs))]

    return measure


def never(programs: Sequence[Program], seconds: float) -> list[float]:
    raise AssertionError("measured again")


def searched(program: Program, measure: whole.Measure | None) -> SearchResult:
    return search(program, COSTS, Limits(60.0), measure)


def test_equal_subprograms_are_one() -> None:
    (found,) = split(prepared(network(3)).module, Prices)
    assert len(found.names) == 3


def test_what_is_measured_fastest_is_taken_everywhere() -> None:
    program = network(2)
    before = str(program.module)
    result = searched(program, times(2.0, 1.0))
    assert str(program.module) == before, "the input is not changed"
    assert compare(program, result.program).is_equal
    assert {a.rule for a in result.applied} == {
        "derive sum-split",
        "derive reindex",
        "derive match",
    }
    assert len({a.place for a in result.applied}) == 2
    assert {a.proof for a in result.applied} == {"exact"}
    assert sum(a.delta for a in result.applied) == pytest.approx(-2.0)
    assert "algebra.scope" in ops_of(result.program)


def test_the_pipeline_gives_the_same_program_again() -> None:
    program = network(2)
    result = searched(program, times(2.0, 1.0))
    pipeline = pipeline_of(result.program.module)
    assert "algebra-reindex{" in pipeline
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline)
    assert plain(again) == plain(result.program)


def plain(program: Program) -> str:
    """The text without notes on where it came from."""
    copy = program.clone()
    for op in copy.module.walk():
        for note in ("isoform.derivation", "isoform.pipeline", "isoform.rules"):
            op.attributes.pop(note, None)
    return str(copy.module)


@pytest.mark.parametrize("measure", [times(1.0, 1.0), times(1.0, 2.0), times(1.0, 0.97)])
def test_a_program_not_faster_beyond_noise_is_declined(measure: whole.Measure) -> None:
    program = network()
    result = searched(program, measure)
    assert str(result.program.module) == str(program.module)
    assert result.applied == []
    (entry,) = result.rejected
    assert "measured to take" in entry.reason


def test_of_several_programs_the_fastest_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    for number, wanted in enumerate(((4.0, 1.0, 3.0), (4.0, 3.0, 1.0, 3.0))):
        monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path / str(number)))
        found.append(plain(searched(network(), times(*wanted)).program))
    assert found[0] != found[1]


def test_without_a_machine_the_model_decides() -> None:
    program = network()
    costs = Costs(target_named("p100"))
    result = search(program, costs, Limits(60.0))
    (sub,) = split(prepared(program).module, lambda known: Prices(known, costs.target))
    searcher = Searcher(Prices(sub.known, costs.target), whole.SETTINGS)
    best = searcher.search((sub.root,)).best[0]
    gains = best.priced.seconds < sub.native * choose.MARGIN
    assert bool(result.applied) == gains
    assert compare(program, result.program).is_equal


def test_a_decision_is_remembered() -> None:
    first = searched(network(), times(2.0, 1.0))
    again = searched(network(), never)
    assert str(again.program.module) == str(first.program.module)
    assert again.applied == first.applied


def test_other_bounds_are_another_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    searched(network(), times(1.0, 2.0))
    monkeypatch.setattr(whole, "SETTINGS", replace(whole.SETTINGS, states=61))
    with pytest.raises(AssertionError, match="measured again"):
        searched(network(), never)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"trail": 3}', '{"trail": null, "x": 1}'])
def test_a_broken_memory_counts_as_none(text: str, tmp_path: Path) -> None:
    memory = Remembered(CacheFolder(tmp_path))
    decision = Decision((("sum-split", "a1"),), 1.0, 2.0, 1.0, "measured", "states", 3)
    memory.save(("a",), decision)
    assert memory.load(("a",)) == decision
    assert memory.load(("b",)) is None
    next(tmp_path.glob("derived-*.json")).write_text(text)
    assert memory.load(("a",)) is None


def test_without_time_nothing_is_searched() -> None:
    result = search(network(), COSTS, Limits(0.0), never)
    assert result.stop_reason == "time"
    assert [r.reason for r in result.rejected] == ["the time was spent"]


def test_what_was_cut_short_is_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(whole, "MOST_SECONDS", 0.0)
        cut = searched(network(), times(1.0, 2.0))
    assert cut.stop_reason == "time"
    assert "programs, the best" in cut.rejected[0].reason, "it was searched"
    assert searched(network(), times(2.0, 1.0)).applied


def test_ctrl_c_keeps_what_was_decided() -> None:
    def interrupted(programs: Sequence[Program], seconds: float) -> list[float]:
        raise KeyboardInterrupt

    result = searched(network(), interrupted)
    assert result.stop_reason == "interrupted"
    assert result.applied == []


def test_a_wrong_derivation_is_a_bug() -> None:
    module = prepared(network()).module
    (sub,) = split(module, Prices)
    result = Searcher(Prices(sub.known), replace(whole.SETTINGS, depth=1)).search((sub.root,))
    (inner,) = [s for s in result.states if s.depth == 1][:1]
    wrong = build(sub.root.shape, (), [Read(inner.roots[0], (Index(0),) * 4)], sub.root.element)
    state = replace(inner, roots=(wrong,))
    done = Done(("y",), (sub.root,), Found(state, Prices().program((wrong,))), [])
    with pytest.raises(UserError, match="a derivation is wrong"):
        whole.proof_of(done)


def test_one_scope_alone_computes_the_same() -> None:
    module = prepared(network()).module
    known = weights_only(main_of(module).body.block.ops)
    op = next(o for o in scope_ops(module) if o.summation)
    alone, copy = isolate(op, known)
    alone.module.verify()
    assert list(alone.inputs.values()) == [op.inputs[0].type]
    there = Lift(alone.module, positional=True).scope(copy)
    assert there is Lift(module, positional=True).scope(op)


def test_layers_with_numbered_names_are_apart() -> None:
    """`y.0` and `y.1` would be taken for parts of one derivation."""
    text = """
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
      %y.0 = algebra.scope (m: 4, n: 8) sum (k: 8) %x[m, k] * %w[k, n] : tensor<4x8xf32>
      %y.1 = algebra.scope (m: 4, n: 8) sum (k: 8) %y.0[m, k] * %w[k, n] : tensor<4x8xf32>
      func.return %y.1 : tensor<4x8xf32>
    }
    """
    program = Program(Parser(make_context(), text).parse_module())
    (sub,) = split(prepared(program).module, Prices)
    assert sub.names == ["s0", "s1"]


def ops_of(program: Program) -> list[str]:
    return [op.name for op in program.main.body.block.ops]
