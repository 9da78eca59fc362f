"""Whole programs: split, searched once each, measured, remembered, and never made slower."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.parser import Parser

from isoform.compiler.registry import make_context
from isoform.compiler.targets.levels import run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.cache_folder import CacheFolder
from isoform.dialects.canonical_types import Read, Scope, leaf
from isoform.dialects.errors import UserError
from isoform.dialects.index import Index, iterators
from isoform.dialects.program import Program, keep_names, main_of, pipeline_of
from isoform.dialects.types import Array
from isoform.dialects.weights_only import weights_only
from isoform.lowering.algebra_to_kernel.table import Match
from isoform.lowering.targets import target_named
from isoform.passes.cost.cost_file import CostFile
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation import propose
from isoform.passes.derivation.body import build
from isoform.passes.derivation.bound import least_of_scope
from isoform.passes.derivation.derive import FoundDerivation
from isoform.passes.derivation.isolate import isolate
from isoform.passes.derivation.lift import Lift, scope_ops
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.propose import search
from isoform.passes.derivation.replay import Replay, StaleResultError
from isoform.passes.derivation.search import FoundProgram, Searcher
from isoform.passes.equivalence import compare
from isoform.passes.margins import ACCEPT, PRUNE
from isoform.passes.search_result import Limits, Measure, SearchResult
from isoform.passes.subprograms.baselines import subprogram_key
from isoform.passes.subprograms.decisions import Decision, DecisionRecord
from isoform.passes.subprograms.driver import search_subprograms
from isoform.passes.subprograms.find import Subprogram, groups, split
from isoform.passes.subprograms.prepare import prepared
from isoform.passes.subprograms.prices import Prices
from isoform.passes.subprograms.proposals import AppliedRewrite, ChosenOccurrence, Proposals

COSTS = Costs(target_named("cpu"))
LONG = propose.SETTINGS


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions are remembered in a folder of the test's own, and searches are short."""
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))
    monkeypatch.setattr(propose, "SETTINGS", replace(propose.SETTINGS, states=60, keep=3))


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


def times(*wanted: float) -> Measure:
    """A measurement that gives these seconds, one for each program, the last for the others."""

    def measure(programs: Sequence[Program], seconds: float) -> list[float]:
        return [wanted[min(k, len(wanted) - 1)] for k in range(len(programs))]

    return measure


def never(programs: Sequence[Program], seconds: float) -> list[float]:
    raise AssertionError("measured again")


def searched(program: Program, measure: Measure | None) -> SearchResult:
    return search(program, COSTS, Limits(60.0), measure)


def test_equal_subprograms_are_searched_once() -> None:
    (found,) = split(prepared(network(3)).module, ScopePrices)
    assert len(found.names) == 3


def test_a_decision_depends_on_scopes_weights_and_costs() -> None:
    (found,) = split(prepared(network()).module, ScopePrices)
    scaled = CostFile("cpu", class_scale={"conv": 2.0})
    questions = (
        (found, COSTS),
        (replace(found, known=()), COSTS),
        (found, Costs(target_named("p100"))),
        (found, Costs(COSTS.target, scaled)),
    )
    assert found.known
    assert len({subprogram_key(sub, costs) for sub, costs in questions}) == len(questions)
    assert subprogram_key(found, COSTS) == subprogram_key(found, Costs(COSTS.target))


def test_the_fastest_measured_form_is_applied_everywhere() -> None:
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


def test_the_recorded_pipeline_reproduces_the_program() -> None:
    program = network(2)
    result = searched(program, times(2.0, 1.0))
    pipeline = pipeline_of(result.program.module)
    assert "algebra-apply-rule{rule=reindex " in pipeline
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


def test_a_rewrite_that_does_not_fit_the_program_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    match = Replay.match

    def lost(self: Replay, scope: Scope, found: Match) -> None:
        if len(main_of(self.module).body.block.args) > 1:
            raise StaleResultError
        match(self, scope, found)

    monkeypatch.setattr(Replay, "match", lost)
    program = network(2)
    result = searched(program, times(2.0, 1.0))
    assert result.applied == []
    reasons = [r.reason for r in result.rejected if r.reason.startswith("what it reads")]
    assert len(reasons) == 2
    assert compare(program, result.program).is_equal


@pytest.mark.parametrize("measure", [times(1.0, 1.0), times(1.0, 2.0), times(1.0, 0.97)])
def test_a_program_not_faster_beyond_noise_is_declined(measure: Measure) -> None:
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
    (sub,) = split(prepared(program).module, lambda known: ScopePrices(known, costs.target))
    searcher = Searcher(ScopePrices(sub.known, costs.target), propose.SETTINGS)
    best = searcher.search((sub.root,)).best[0]
    gains = best.priced.seconds < sub.native * ACCEPT.subprogram
    assert bool(result.applied) == gains
    assert compare(program, result.program).is_equal


def test_a_decision_is_remembered() -> None:
    first = searched(network(), times(2.0, 1.0))
    again = searched(network(), never)
    assert str(again.program.module) == str(first.program.module)
    assert again.applied == first.applied


def test_other_search_limits_need_a_new_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    searched(network(), times(1.0, 2.0))
    monkeypatch.setattr(propose, "SETTINGS", replace(propose.SETTINGS, states=61))
    with pytest.raises(AssertionError, match="measured again"):
        searched(network(), never)


def test_other_compile_options_need_a_new_decision() -> None:
    """What is measured is compiled so: an algorithm too inexact now may have won then."""
    first, other = (Limits(60.0, compiled=f"effort {effort}") for effort in ("quick", "max"))
    search(network(), COSTS, first, times(1.0, 2.0))
    search(network(), COSTS, first, never)
    with pytest.raises(AssertionError, match="measured again"):
        search(network(), COSTS, other, never)


class OneOf(propose.DerivationProposer):
    """Proposes one of the programs that rules derive, under a name of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(60)
        self.number = number
        self.rule = f"proposer {number}"

    def propose(self, sub: Subprogram, seconds: float) -> Proposals:
        found = super().propose(sub, seconds)
        return replace(found, found=found.found[self.number :][:1])

    def apply(self, module: ModuleOp, chosen: ChosenOccurrence) -> AppliedRewrite:
        done = super().apply(module, chosen)
        return replace(done, rules=[(self.rule, floats) for _, floats in done.rules])


@pytest.mark.parametrize(("taken", "wins"), [((2.0, 1.0, 1.5), 0), ((2.0, 1.5, 1.0), 1)])
def test_of_several_proposers_the_best_program_is_taken(
    taken: tuple[float, ...], wins: int
) -> None:
    program, prices = network(), Prices(COSTS, times(*taken))
    result = search_subprograms(program, [OneOf(0), OneOf(1)], Limits(60.0), prices, PRUNE)
    assert {applied.rule for applied in result.applied} == {f"proposer {wins}"}
    assert compare(program, result.program).is_equal


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"trail": 3}', '{"trail": null, "x": 1}'])
def test_a_broken_decision_file_is_ignored(text: str, tmp_path: Path) -> None:
    memory = DecisionRecord(CacheFolder(tmp_path))
    decision = Decision((("sum-split", "a1"),), 1.0, 2.0, 1.0, "measured", "steps", "3 programs")
    memory.save(("a",), decision)
    assert memory.load(("a",)) == decision
    assert memory.load(("b",)) is None
    next(tmp_path.glob("decided-*.json")).write_text(text)
    assert memory.load(("a",)) is None


def test_without_time_nothing_is_searched() -> None:
    result = search(network(), COSTS, Limits(0.0), never)
    assert result.stop_reason == "time"
    assert [r.reason for r in result.rejected] == ["the time was spent"]


def test_an_interrupted_search_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(propose, "PRUNE", replace(PRUNE, seconds=0.0))
        cut = searched(network(), times(1.0, 2.0))
    assert cut.stop_reason == "time"
    assert "programs, the best" in cut.rejected[0].reason, "it was searched"
    assert searched(network(), times(2.0, 1.0)).applied


def test_ctrl_c_keeps_earlier_decisions() -> None:
    def interrupted(programs: Sequence[Program], seconds: float) -> list[float]:
        raise KeyboardInterrupt

    result = searched(network(), interrupted)
    assert result.stop_reason == "interrupted"
    assert result.applied == []


def test_a_wrong_derivation_raises() -> None:
    module = prepared(network()).module
    (sub,) = split(module, ScopePrices)
    searcher = Searcher(ScopePrices(sub.known), replace(propose.SETTINGS, depth=1))
    result = searcher.search((sub.root,))
    (inner,) = [s for s in result.states if s.depth == 1][:1]
    wrong = build(sub.root.shape, (), [Read(inner.roots[0], (Index(0),) * 4)], sub.root.element)
    state = replace(inner, roots=(wrong,))
    done = FoundDerivation(
        ("y",), (sub.root,), FoundProgram(state, ScopePrices().program((wrong,))), []
    )
    with pytest.raises(UserError, match="a derivation is wrong"):
        propose.proof_of(done)


def test_an_isolated_scope_computes_the_same() -> None:
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
    (sub,) = split(prepared(program).module, ScopePrices)
    assert sub.names == ["s0", "s1"]


# --- pairs and groups ---------------------------------------------------------------------------


def pair_of_lines(taps: int = 3) -> Program:
    """A convolution along the height and one along the width of one input, as in GCN."""
    b = GraphBuilder()
    x = b.input("x", (1, 6, 5, 5))
    half, ends = taps // 2, []
    for k, (window, pads) in enumerate((((taps, 1), (half, 0)), ((1, taps), (0, half)))):
        shape = (4, 6, *window)
        kernel = b.weight(f"k{k}", drawn(shape, k), shape, f32)
        y = b.conv(x, kernel, strides=[1, 1], pads=[*pads, *pads], dilations=[1, 1])
        ends.append(b.relu(y))
    b.output("y", b.add(*ends))
    return b.build()


def products(shared: bool) -> Program:
    """Three products of one input, or of inputs of their own, the second read by a fourth."""
    b = GraphBuilder()
    x, made = b.input("x", (8, 6)), []
    for k in range(3):
        own = x if shared else b.input(f"x{k}", (8, 6))
        made.append(b.matmul(own, b.weight(f"k{k}", drawn((6, 6), k), (6, 6), f32)))
        b.output(f"y{k}", b.relu(made[-1]))
    b.output("z", b.matmul(made[1], b.weight("k3", drawn((6, 6), 3), (6, 6), f32)))
    return b.build()


def drawn(shape: tuple[int, ...], seed: int) -> Callable[[], Array]:
    return lambda: np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def rules_of(result: SearchResult) -> Counter[str]:
    return Counter(applied.rule.removeprefix("derive ") for applied in result.applied)


def only_together(programs: Sequence[Program], seconds: float) -> list[float]:
    """A measurement by which what has two results gains, and one result never."""
    one = len(programs[0].outputs) == 1
    return [1.0 if one or k == 0 else 0.5 for k in range(len(programs))]


def test_lines_that_share_an_input_become_one_product() -> None:
    """GCN's pair: derived and merged, searched, applied and proved in the program."""
    program = pair_of_lines()
    (pair,) = groups(prepared(program).module, ScopePrices)
    assert len(pair.roots) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(propose, "SETTINGS", replace(LONG, keep=3))
        result = searched(program, only_together)
    merged = {"merge-shared-operand", "merge-batch", "merge-rows"} & set(rules_of(result))
    assert merged, rules_of(result)
    assert {a.proof for a in result.applied} == {"exact"}
    assert compare(program, result.program).is_equal
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline_of(result.program.module))
    assert plain(again) == plain(result.program)


def test_products_of_one_input_are_stacked_and_others_batched() -> None:
    for shared, rule in ((True, "merge-shared-operand"), (False, "merge-batch")):
        program = products(shared)
        result = searched(program, only_together)
        assert rules_of(result)[rule] > 0
        assert compare(program, result.program).is_equal


def test_a_product_and_its_reader_are_not_grouped() -> None:
    module = prepared(products(shared=False)).module
    block = [op.result.name_hint for op in scope_ops(module)]
    names = [op.result.name_hint for op in scope_ops(module) if op.summation]
    assert len(names) == 4
    second, fourth = names[1], names[3]
    assert block.index(second) < block.index(fourth)
    found = [occurrence for sub in groups(module, ScopePrices) for occurrence in sub.occurrences]
    assert found
    assert (second, fourth) not in found


def test_a_pair_that_saves_less_than_its_members_alone_is_not_taken() -> None:
    def alone(programs: Sequence[Program], seconds: float) -> list[float]:
        one = len(programs[0].outputs) == 1
        return [1.0 if k == 0 else (0.1 if one else 0.9) for k in range(len(programs))]

    result = searched(pair_of_lines(), alone)
    assert result.applied
    assert not {"merge-shared-operand", "merge-batch", "merge-rows"} & set(rules_of(result))


# --- bounds -------------------------------------------------------------------------------------


def test_programs_that_cannot_be_faster_are_not_measured() -> None:
    """At the peak Winograd's half of a line takes what it does: nothing derived is measured."""
    calls: list[int] = []

    def at_the_peak(programs: Sequence[Program], seconds: float) -> list[float]:
        calls.append(len(programs))
        if programs[0].source != "subprogram":  # the product that shows the machine's peak
            return [1.0]
        return [0.4 * 2 * 5 * 5 * 6 * 4 * 3 / COSTS.target.rate("f32")] * len(programs)

    result = searched(pair_of_lines(), at_the_peak)
    assert result.applied == []
    assert set(calls) <= {1}


def two_products() -> Program:
    """A large product and one a sixteenth of it."""
    b = GraphBuilder()
    x = b.input("x", (512, 512))
    for k, columns in enumerate((512, 32)):
        shape = (512, columns)
        x = b.relu(b.matmul(x, b.weight(f"k{k}", drawn(shape, k), shape, f32)))
    b.output("y", x)
    return b.build()


def over_the_peak(large: float, small: float) -> Measure:
    """A measurement of `two_products`: so many times as long as at the machine's peak."""

    def measure(programs: Sequence[Program], seconds: float) -> list[float]:
        (result,) = programs[0].outputs.values()
        columns = result.get_shape()[-1]
        factor = large if columns == 512 else small
        return [factor * 2 * 512**2 * columns / COSTS.target.rate("f32")] * len(programs)

    return measure


def test_a_search_stops_where_nothing_is_left_to_gain() -> None:
    """The large product runs at the peak, and the small one is too small a part to matter."""
    result = searched(two_products(), over_the_peak(1.0, 1.2))
    assert result.applied == []
    assert ["stopped" in r.reason for r in result.rejected] == [True]
    assert ": 0 searched" in result.looked_at


def test_what_runs_at_the_peak_is_not_searched() -> None:
    """The small product could save much, so the search goes on, past the large one."""
    result = searched(two_products(), over_the_peak(1.0, 5.0))
    assert result.rejected[0].reason.startswith("nothing derived could be faster: ")
    assert ": 1 searched, " in result.looked_at
    again = searched(two_products(), never)
    assert again.rejected == result.rejected, "what it takes was remembered"


def test_the_least_operations_count_padding_out_and_give_up_where_products_repeat() -> None:
    n, f, h, w, c, r = iterators(6)
    x, k = leaf("x", (1, 6, 5, 5), f32), leaf("k", (4, 6, 3), f32)
    line = build((1, 4, 5, 5), (6, 3), [Read(x, (n, c, h + r - 1, w)), Read(k, (f, c, r))], f32)
    inside = 1 - 2 / 15  # the first and the last row lose one of three taps
    assert least_of_scope(line) == pytest.approx(2 * 4 * 25 * 18 * inside * 0.5)
    both = build((1, 4, 3, 3), (6, 3), [Read(x, (n, c, h + w, r)), Read(k, (f, c, r))], f32)
    assert least_of_scope(both) == 0.0


@pytest.mark.parametrize(
    "taps, left", [(2, 4 / 6), (3, 6 / 12), (5, 8 / 20), (7, 10 / 28), (9, 10 / 28)]
)
def test_winograd_may_spare_multiplications_along_one_dim(taps: int, left: float) -> None:
    n, f, h, w, c, r = iterators(6)
    x, k = leaf("x", (1, 6, 5, 4 + taps), f32), leaf("k", (4, 6, taps), f32)
    line = build((1, 4, 5, 5), (6, taps), [Read(x, (n, c, h, w + r)), Read(k, (f, c, r))], f32)
    assert least_of_scope(line) == pytest.approx(2 * 4 * 25 * 6 * taps * left)


def ops_of(program: Program) -> list[str]:
    return [op.name for op in program.main.body.block.ops]
