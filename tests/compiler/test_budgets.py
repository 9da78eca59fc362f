"""Budgets hold, comparisons included, and Ctrl-C ends every stage: with a clock of its own."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoform.compiler.api import optimize
from isoform.compiler.frontends.program_file import parse
from isoform.compiler.search import measuring, optimizer
from isoform.compiler.search.optimizer import Optimized
from isoform.compiler.search.strategies import Measure, Strategy
from isoform.compiler.targets import cpu
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.deadline import TimeIsUpError, check_time, paused, until
from isoform.dialects.floats import BITS
from isoform.dialects.program import Program
from isoform.passes.cost.costs import Costs
from isoform.passes.search_result import Limits, SearchResult


class Clock:
    """What the time is, what compiling and running take, and what happens then."""

    def __init__(self) -> None:
        self.now = 0.0
        self.compile: dict[str, float] = {}
        self.run = 0.0
        self.at_run: Callable[[], None] = lambda: None
        self.runs = 0

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


class Runner:
    """Stands for a compiled program."""

    notes: Any = None

    def __init__(self, clock: Clock, program: Program) -> None:
        self.clock, self.program = clock, program

    def run(self, inputs: Any) -> dict[str, np.ndarray]:
        self.clock.runs += 1
        self.clock.at_run()
        faster = "neg" in str(self.program.module)
        self.clock.pass_by(self.clock.run * (0.5 if faster else 1.0))
        return {"y": np.zeros(4, np.float32)}

    def close(self) -> None:
        """Hold nothing."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: made.now)

    def compiled(program: Program, options: cpu.CpuOptions) -> Runner:
        check_time()
        kind = "after" if "neg" in str(program.module) else "before"
        made.pass_by(made.compile.get(kind, 1.0))
        return Runner(made, program)

    monkeypatch.setattr(cpu, "compile_cpu", compiled)
    monkeypatch.setattr(measuring, "compile_cpu", compiled)
    return made


def program() -> Program:
    b = GraphBuilder()
    b.output("y", b.relu(b.input("x", (4,))))
    return b.build()


OTHER = (
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {} func.return %y : tensor<4xf32> }}"
)


def other() -> Program:
    text = "%a = graph.neg %x : tensor<4xf32> %y = graph.relu %a : tensor<4xf32>"
    made = parse(OTHER.format(text))
    made.main.arg_attrs = program().main.arg_attrs
    return made


def asked(
    monkeypatch: pytest.MonkeyPatch,
    budget: float,
    *searches: Callable[[], SearchResult],
    given: Program | None = None,
    target: str = "cpu",
) -> Optimized:
    """What `optimize` makes of the program with these searches."""

    def strategy(number: int, search: Callable[[], SearchResult]) -> Strategy:
        def run(base: Program, costs: Costs, limits: Limits, measure: Measure | None) -> Any:
            return search()

        return Strategy(f"search{number}", "algebra", 1.0, run, BITS)

    made = tuple(strategy(k, search) for k, search in enumerate(searches))
    monkeypatch.setattr(optimizer, "chosen", lambda *_, **__: made)
    return optimize(given or program(), target, budget=budget)


def gives(made: Program, stop: Any = "finished") -> Callable[[], SearchResult]:
    return lambda: SearchResult(made, stop)


def interrupted() -> SearchResult:
    raise KeyboardInterrupt


def test_a_comparison_ends_with_the_budget(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.run = 3.0
    found = asked(monkeypatch, 10.0)
    assert clock.now <= 10.0 + clock.run + 1.0, "one run more, and one compilation"
    assert found.report["stop_reason"] == "time"
    assert "the budget was spent" in found.report["message"]
    assert found.report["cost"]["kind"] == "modelled"


def test_what_is_not_compared_in_time_is_not_returned(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.run = 0.001
    found = asked(monkeypatch, 60.0, gives(other()))
    assert "neg" in str(found.module)
    assert found.report["cost"]["kind"] == "measured"
    clock.run = 5.0
    found = asked(monkeypatch, 60.0, gives(other(), "interrupted"))
    assert "neg" not in str(found.module)
    assert "rewrites not kept: the budget was spent" in found.report["message"]


def test_searches_that_take_too_long_leave_the_comparison_its_part(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def long() -> SearchResult:
        clock.pass_by(31.0)  # all of the budget, as an extraction on a busy machine may
        return SearchResult(program(), "time")

    clock.run = 0.001
    found = asked(monkeypatch, 30.0, long)
    assert found.report["cost"]["kind"] == "measured"
    clock.run = 11.0  # more than its part
    found = asked(monkeypatch, 30.0, long)
    assert "the budget was spent" in found.report["message"]


def test_one_compilation_of_the_result_is_apart(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.run, clock.compile = 0.1, {"before": 1.0}
    found = asked(monkeypatch, 30.0)
    stages = found.report["stages_s"]
    assert stages["compile"] == pytest.approx(1.0)
    assert sum(stages.values()) == pytest.approx(found.report["elapsed_s"])
    before, clock.compile = clock.now, {"before": 1.0, "after": 500.0}
    trial = optimizer.measure_pair(program(), other(), 0, cpu.CpuOptions(1), 20.0)
    assert trial.compiling == pytest.approx(500.0)
    with until(before + 1000.0):
        assert optimizer.measure_pair(program(), other(), 0, cpu.CpuOptions(1), 20.0)


def test_searches_end_at_two_thirds(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def long() -> SearchResult:
        clock.pass_by(21.0)
        return SearchResult(program(), "time")

    found = asked(monkeypatch, 30.0, long, interrupted)
    assert [s["strategy"] for s in found.report["searches"]] == ["search0"]
    assert {"rule": "search1", "place": "main", "reason": "the time was spent"} in found.report[
        "rejected"
    ]
    assert found.report["cost"]["kind"] == "measured"


def test_what_a_search_found_in_all_of_its_time_is_priced(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def long() -> SearchResult:
        clock.pass_by(20.5)
        return SearchResult(other(), "time")

    clock.run = 0.001
    found = asked(monkeypatch, 30.0, long)
    assert [s["kept"] for s in found.report["searches"]] == [True]
    assert "neg" in str(found.module)


def test_a_busy_machine_loses_nothing_that_the_model_prices(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def product(times: int) -> Program:
        b = GraphBuilder()
        x = y = b.input("x", (64, 64))
        for _ in range(times):
            y = b.matmul(y, x)
        b.output("y", y)
        return b.build()

    def long() -> SearchResult:
        clock.pass_by(100.0)  # more than all of the budget
        return SearchResult(product(1), "time")

    found = asked(monkeypatch, 30.0, long, given=product(2), target="h100")
    assert [s["kept"] for s in found.report["searches"]] == [True]
    cost = found.report["cost"]
    assert cost["after"] < cost["before"] and "not kept" not in found.report["message"]


def test_an_interrupt_ends_all_searching_and_what_was_found_is_compared(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.run = 0.001
    found = asked(monkeypatch, 60.0, gives(other(), "interrupted"), interrupted)
    assert [s["strategy"] for s in found.report["searches"]] == ["search0"]
    assert found.report["stop_reason"] == "interrupted"
    assert found.report["cost"]["kind"] == "measured"
    assert "neg" in str(found.module)


def test_a_search_that_does_not_catch_an_interrupt_ends_the_same_way(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asked(monkeypatch, 60.0, interrupted, gives(other()))
    assert [s["stop_reason"] for s in found.report["searches"]] == ["interrupted"]
    assert found.report["stop_reason"] == "interrupted"


def test_an_interrupted_comparison_returns_the_input(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_run() -> None:
        if searched and clock.now > searched[0]:
            raise KeyboardInterrupt

    compare, searched = optimizer.measure_pair, list[float]()

    def compared(*arguments: Any) -> Any:
        searched.append(clock.now)
        return compare(*arguments)

    monkeypatch.setattr(optimizer, "measure_pair", compared)
    clock.run, clock.at_run = 0.1, at_run
    found = asked(monkeypatch, 60.0, gives(other()))
    assert found.report["stop_reason"] == "interrupted"
    assert "neg" not in str(found.module)
    assert "interrupted before it was compared" in found.report["message"]


def test_the_second_interrupt_ends_everything(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_run() -> None:
        raise KeyboardInterrupt

    clock.at_run = at_run
    with pytest.raises(KeyboardInterrupt):
        asked(monkeypatch, 60.0, gives(other(), "interrupted"))


def test_work_apart_puts_the_end_off(clock: Clock) -> None:
    with until(10.0):
        with paused():
            clock.pass_by(100.0)
            check_time()
        check_time()
        clock.pass_by(9.9)
        check_time()
        with pytest.raises(TimeIsUpError), until(1000.0):  # an inner one is no longer
            clock.pass_by(0.2)
            check_time()
    check_time()


# --- the command, really interrupted ------------------------------------------------------------


def interrupt(folder: Path, seconds: float, times: int = 1) -> tuple[int, str]:
    """Send SIGINT to `isoform optimize` once its modules are loaded and so many seconds passed."""
    flags = ["--budget", "20", "-o", "o.mlir", "--report", "r.json", "--certificate", "c.json"]
    command = ["optimize", "zoo:squeezenet"]
    code = "import sys; from isoform.compiler import commands, cli; print('on', flush=True)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}sys.exit(cli.main(sys.argv[1:]))", *command, *flags],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(times):
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


def is_consistent(folder: Path) -> bool:
    """Nothing is half-written: a program that is there can be read."""
    from isoform.compiler.frontends.program_file import read_program

    names = {path.name for path in folder.iterdir()}
    assert names <= {"o.mlir", "o.safetensors", "r.json", "c.json"}
    return "o.mlir" not in names or bool(read_program(folder / "o.mlir").outputs)


def test_ctrl_c_writes_what_was_found(tmp_path: Path) -> None:
    status, err = interrupt(tmp_path, 3.0)
    assert status == 130, err
    assert "interrupted" in err and "Traceback" not in err
    assert is_consistent(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_at_many_moments(tmp_path: Path, times: int) -> None:
    rng = np.random.default_rng(times)
    for number, seconds in enumerate(rng.uniform(0.0, 18.0 / times, 12)):
        folder = tmp_path / str(number)
        folder.mkdir()
        status, err = interrupt(folder, seconds, times)
        assert status in (130, 0), err
        assert "Traceback" not in err
        assert is_consistent(folder)
