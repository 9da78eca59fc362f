"""The table of searches, and how `optimize` takes what they return."""

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

import isoform
from isoform.compiler.search import measuring
from isoform.compiler.search.records import ComparisonRequest
from isoform.compiler.search.search_stage import run_searches
from isoform.compiler.search.strategies import STRATEGIES, Strategy, chosen
from isoform.compiler.targets.cpu import compile_cpu
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.session import Runner, Session
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.floats import BITS
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.margins import MEASURE
from isoform.passes.search_result import (
    Applied,
    Limits,
    Measure,
    Rejected,
    SearchResult,
    StopReason,
)

MARK = "test.number"
Result = Callable[[Program], SearchResult]


def program() -> Program:
    b = GraphBuilder()
    b.output("y", b.relu(b.input("x", (4,))))
    return b.build()


def marked(base: Program, number: int) -> Program:
    """Another program, so that a fake measurement knows it."""
    made = base.clone()
    made.module.attributes[MARK] = StringAttr(str(number))
    return made


def number_of(made: Program) -> int:
    mark = made.module.attributes.get(MARK)
    return int(mark.data) if isinstance(mark, StringAttr) else 0


def test_several_searches_are_named_with_commas_and_keep_their_order() -> None:
    assert [s.name for s in chosen("mutate, saturate", "kernel")] == ["saturate", "mutate"]
    named = {s.name for s in chosen("substitute,optimize", "kernel")}
    assert named == {s.name for s in STRATEGIES}
    assert [s.name for s in chosen("saturate,derive", "graph")] == ["saturate"]
    with pytest.raises(UserError, match="unknown strategy 'deriv'"):
        chosen("saturate,deriv", "kernel")


def gives(
    *numbers: int,
    stop: StopReason = "finished",
    log: list[Limits] | None = None,
    level: str = "algebra",
) -> Strategy:
    """A search that returns programs of these numbers, the first as its result."""

    def search(
        base: Program, costs: Costs, limits: Limits, measure: Measure | None
    ) -> SearchResult:
        if log is not None:
            log.append(limits)
        made = [marked(base, n) if n else base.clone() for n in numbers]
        applied = [Applied(f"rule-{numbers[0]}", f"on {number_of(base)}", "exact", -1.0, BITS)]
        rejected = [Rejected("other", "main", "no")]
        return SearchResult(made[0], stop, applied, rejected, made[1:])

    return Strategy(f"fake{numbers[0]}", level, 1.0, search, BITS)


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """What each program is measured to take; 1.0 by default."""
    known: dict[int, float] = {}

    def measure(
        question: ComparisonRequest, programs: Sequence[Program], limit: float
    ) -> list[float]:
        return [known.get(number_of(p), 1.0) for p in programs]

    monkeypatch.setattr(measuring, "measure_programs", measure)
    return known


def question(left: float = 600.0) -> ComparisonRequest:
    target = target_named("cpu")
    return ComparisonRequest(target, Costs(target), 0, CpuOptions(1), time.perf_counter() + left)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands still: what is left of a budget is what was not given away."""
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)


def test_the_fastest_of_result_and_alternatives_is_kept(seconds: dict[int, float]) -> None:
    seconds |= {1: 0.8, 2: 0.6, 3: 0.7}
    found = run_searches(program(), [gives(1, 2, 3)], question())
    assert number_of(found.program) == 2
    (entry,) = found.searches
    assert (entry["strategy"], entry["stop_reason"]) == ("fake1", "finished")
    assert (entry["candidates"], entry["kept"]) == (3, True)
    assert entry["reason"] == "its best program was measured to take 0.600 of the time"
    assert list(found.seconds) == ["fake1"]


def test_of_candidates_as_fast_within_noise_the_first_is_kept(seconds: dict[int, float]) -> None:
    seconds |= {1: 0.604, 2: 0.6, 3: 0.599}
    assert number_of(run_searches(program(), [gives(1, 2, 3)], question()).program) == 1
    seconds |= {1: 0.61}
    assert number_of(run_searches(program(), [gives(1, 2, 3)], question()).program) == 2


def test_the_next_search_gets_what_was_kept(seconds: dict[int, float]) -> None:
    seconds |= {1: 0.8, 2: 0.5}
    found = run_searches(program(), [gives(1), gives(2)], question())
    assert number_of(found.program) == 2
    assert [r["place"] for r in found.rewrites] == ["on 0", "on 1"]
    assert [r["rule"] for r in found.rewrites] == ["rule-1", "rule-2"]


@pytest.mark.parametrize("taken", [1.0, 1.5, 0.98])
def test_what_is_not_faster_beyond_noise_is_rejected(
    taken: float, seconds: dict[int, float]
) -> None:
    seconds |= {1: taken}
    given = program()
    found = run_searches(given, [gives(1)], question())
    assert found.program is given
    assert found.rewrites == []
    assert found.searches[0]["kept"] is False
    assert f"measured to take {taken:.3f}" in found.searches[0]["reason"]


def test_an_equal_program_is_not_measured(seconds: dict[int, float]) -> None:
    seconds |= {0: 0.0}
    found = run_searches(program(), [gives(0)], question())
    assert found.searches[0]["candidates"] == 0


def test_time_is_shared_among_those_still_to_run(seconds: dict[int, float], stopped: None) -> None:
    log: list[Limits] = []
    run_searches(program(), [gives(1, log=log), gives(2, log=log)], question(10.0))
    assert log[0].seconds == pytest.approx(10.0 / 3)
    assert log[1].seconds == pytest.approx(20.0 / 3), "the first took nothing"


def test_the_first_reason_to_stop_is_told(seconds: dict[int, float]) -> None:
    found = run_searches(program(), [gives(1), gives(2, stop="time")], question())
    assert found.stop_reason == "time"
    assert run_searches(program(), [], question()).stop_reason == "finished"


def test_a_graph_search_needs_a_graph_program(seconds: dict[int, float]) -> None:
    from isoform.compiler.targets.levels import lower_to

    found = run_searches(lower_to(program(), "algebra"), [gives(1, level="graph")], question())
    assert found.searches == []
    assert "algebra level already" in found.rejected[0]["reason"]


def test_a_graph_rewrite_modelled_to_save_nothing_is_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(
        question: ComparisonRequest, programs: Sequence[Program], limit: float
    ) -> list[float]:
        raise AssertionError("measured")

    monkeypatch.setattr(measuring, "measure_programs", never)
    found = run_searches(program(), [gives(1, level="graph")], question())
    assert found.searches[0]["reason"] == "its best program is modelled to take 1.0000 of the time"


def test_measurements_end_with_the_budget(monkeypatch: pytest.MonkeyPatch, stopped: None) -> None:
    asked: list[float] = []

    def measure(
        question: ComparisonRequest, programs: Sequence[Program], limit: float
    ) -> list[float]:
        asked.append(limit)
        return [1.0] * len(programs)

    monkeypatch.setattr(measuring, "measure_programs", measure)
    target = target_named("cpu")
    for seconds in (100.0, 4.0, 0.0):
        end = time.perf_counter() + seconds
        run_searches(
            program(), [gives(1)], ComparisonRequest(target, Costs(target), 0, CpuOptions(1), end)
        )
    assert asked == [MEASURE.program_seconds, pytest.approx(1.0), 0.0]


def test_what_does_not_run_here_is_modelled() -> None:
    target = target_named("h100")
    end = time.perf_counter() + 600.0
    asked = ComparisonRequest(target, Costs(target), 0, CpuOptions(1), end, "it does not run here")
    found = run_searches(program(), [gives(1)], asked)
    assert "modelled to take 1.000" in found.searches[0]["reason"]


def test_a_program_that_only_the_search_finds_faster_is_counted_and_explained() -> None:
    """By ops, a transpose is cheaper than two functions; as kernels, those are an epilogue."""

    def built(behind: Callable[[GraphBuilder, SSAValue], SSAValue]) -> Program:
        b = GraphBuilder()
        x, w = b.input("x", (64, 64)), b.weight("w", np.ones((64, 64), np.float32))
        b.output("y", behind(b, b.matmul(x, w)))
        return b.build()

    before = built(lambda b, y: b.tanh(b.relu(y)))
    after = built(lambda b, y: b.transpose(y, perm=[1, 0]))

    def search(
        base: Program, costs: Costs, limits: Limits, measure: Measure | None
    ) -> SearchResult:
        return SearchResult(after, "finished")

    target = target_named("h100")
    end = time.perf_counter() + 600.0
    asked = ComparisonRequest(target, Costs(target), 0, CpuOptions(1), end, "it does not run here")
    found = run_searches(before, [Strategy("fake", "graph", 1.0, search, BITS)], asked)
    (entry,) = found.searches
    assert not entry["kept"]
    refused = entry["refused"]
    assert refused["search"] < 0.8 < 1.5 < refused["acceptance"]
    assert "1 gemm" in refused["why"]
    assert "1 loops" in refused["why"]
    assert refused["why"] in entry["reason"]


def test_programs_are_measured() -> None:
    taken = measuring.measure_programs(question(), [program(), program()], 0.05)
    assert len(taken) == 2
    assert min(taken) > 0


class Counted(Session):
    """A session that counts those that are open."""

    open_now, most = 0, 0

    def __init__(self, given: Program, runner: Runner) -> None:
        super().__init__(given, runner)
        Counted.open_now += 1
        Counted.most = max(Counted.most, Counted.open_now)

    def close(self) -> None:
        super().close()
        Counted.open_now -= 1


def test_what_is_measured_is_closed_before_the_next_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "Session", Counted)
    assert len(measuring.measure_programs(question(), [program()] * 4, 0.01)) == 4
    assert (Counted.most, Counted.open_now) == (2, 0)
    assert len(measuring.measure_programs(question(), [program()], 0.01)) == 1
    assert (Counted.most, Counted.open_now) == (2, 0)


def test_memory_of_what_was_measured_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    runners: list[weakref.ref[Runner]] = []

    def remember(given: Program, options: CpuOptions) -> Runner:
        alive = sum(runner() is not None for runner in runners)
        assert alive < 2, f"{alive} besides the one that is compiled"
        runners.append(weakref.ref(runner := compile_cpu(given, options)))
        return runner

    monkeypatch.setattr(measuring, "compile_cpu", remember)
    measuring.measure_programs(question(), [marked(program(), n) for n in range(4)], 0.01)
    assert len(runners) == 4


class Timed:
    """Stands for `interleave`: the first program takes 1.0 s, others what they are said to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *alone: float, slower: float = 1.0) -> None:
        self.alone = iter((1.0, *alone))
        self.last, self.slower = 0.0, slower
        self.together: list[int] = []
        monkeypatch.setattr(measuring, "interleave", self)

    def __call__(
        self, runs: Mapping[str, object], seconds: float, least: int, most: int
    ) -> dict[str, list[float]]:
        if len(runs) == 1:
            self.last = next(self.alone)
            return {"": [self.last]}
        self.together.append(least)
        return {"first": [self.slower], "second": [self.last * self.slower]}


def test_a_program_is_compared_with_the_first_as_it_ran_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that slows down in the meantime makes no program slower."""
    Timed(monkeypatch, 0.5, 0.6, slower=3.0)
    assert measuring.measure_programs(question(), [program()] * 3, 0.0) == [
        1.0,
        pytest.approx(0.5),
        pytest.approx(0.6),
    ]


def test_what_is_far_from_the_best_is_not_run_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """2.0 against the first, and 0.8 against 0.5; rounds are long, so that three are enough."""
    timed = Timed(monkeypatch, 2.0, 1.1, 0.5, 0.8, 0.55)
    taken = measuring.measure_programs(question(), [program()] * 6, 0.0)
    assert taken == pytest.approx([1.0, 2.0, 1.1, 0.5, 0.8, 0.55])
    assert timed.together == [3, 3, 3]


def test_what_needs_far_more_memory_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder()
    b.output("y", b.expand(b.relu(b.input("x", (4,))), (4096, 4)))
    programs = [program(), b.build(), program()]
    assert math.inf not in measuring.measure_programs(question(), programs, 0.01)
    monkeypatch.setattr(measuring, "MEASURE", replace(MEASURE, room=0))
    taken = measuring.measure_programs(question(), programs, 0.01)
    assert [math.isinf(seconds) for seconds in taken] == [False, True, False]


# --- the table ----------------------------------------------------------------------------------


def test_a_name_stands_for_one_search_and_optimize_for_all() -> None:
    assert chosen("optimize", "kernel") == tuple(s for s in STRATEGIES if s.by_default)
    for strategy in STRATEGIES:
        assert chosen(strategy.name, "kernel") == (strategy,)


def test_searches_below_the_graph_are_left_out_for_graph_results() -> None:
    assert all(s.level == "graph" for s in chosen("optimize", "graph"))
    assert chosen("derive", "graph") == ()


def test_graph_searches_come_first() -> None:
    levels = [s.level for s in STRATEGIES]
    assert levels == sorted(levels, key=("graph", "algebra").index)


def test_an_unknown_strategy_is_named_with_the_closest() -> None:
    with pytest.raises(UserError, match="did you mean 'derive'"):
        chosen("derives", "kernel")


def test_derive_alone_reports_what_it_did() -> None:
    b = GraphBuilder()
    x = b.input("x", (4, 8))
    b.output("y", b.matmul(x, b.input("w", (8, 4))))
    report = isoform.optimize(b.build(), target="h100", strategy="derive").report
    assert [s["strategy"] for s in report["searches"]] == ["derive"]
    assert report["strategy"] == "derive"


def test_searches_are_told_how_what_they_measure_is_compiled() -> None:
    """Their decisions are remembered apart: of other kernels, and of other numbers of threads."""
    ways = (CpuOptions(1), CpuOptions(2), CpuOptions(1, "max"), CpuOptions(1, tolerance=0.0))
    target = target_named("cpu")
    asked = [ComparisonRequest(target, Costs(target), 0, way, 0.0) for way in ways]
    assert len({one.limits(1.0).key for one in asked}) == len(ways)
