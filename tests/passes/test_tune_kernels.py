"""isoform tune: trials are kept, resumed and merged, and the best schedules are used."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from isoform.compiler import api, cli
from isoform.compiler.commands import tune as tune_command
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import GemmOp
from isoform.dialects.program import Program
from isoform.dialects.schedule import Schedule
from isoform.passes.tuning import tune_kernels
from isoform.passes.tuning.measure_schedules import (
    Trial,
    TrialAnswer,
    TrialRequest,
    measure_trials,
    processor_here,
)
from isoform.passes.tuning.schedule_cost import is_available
from isoform.passes.tuning.tune_kernels import (
    KernelToTune,
    Progress,
    TuneOptions,
    Tuner,
    kernels_of,
)
from isoform.passes.tuning.tuned_kernels import TunedKernels

OPS = "matmul m=24 k=64 n=48  # a product\nmatmul m=24 k=32 n=48 constant=0\n"


def program() -> Program:
    b = GraphBuilder()
    w = b.weight("w", np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32))
    b.output("y", b.relu(b.matmul(b.input("x", (24, 64)), w)))
    return b.build()


def pretended(schedule: Schedule) -> float:
    """Seconds that follow from the schedule alone: few rows and deep blocks are good."""
    entries = schedule.as_dict()
    return 1e-5 * (int(entries.get("rows", 6)) + int(entries.get("unroll", 8))) / 14


class Clock:
    """Pretends to measure; counts what it is asked for."""

    def __init__(self, processor: str = processor_here()[0]) -> None:
        self.asked: list[str] = []
        self.processor = processor
        self.spread = 1.0  # upper quartile over median

    def __call__(self, request: TrialRequest) -> TrialAnswer:
        self.asked += [schedule.text for schedule in request.schedules]
        seconds = [pretended(schedule) for schedule in (Schedule(), *request.schedules)]
        trials = [
            Trial(s, s, s, s / seconds[0], self.spread * s / seconds[0], 0.0) for s in seconds
        ]
        return TrialAnswer(self.processor, "a processor", trials[0], tuple(trials[1:]))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(tune_kernels, "measure_trials", found)
    monkeypatch.setattr(tune_kernels, "BATCH", 8)
    return found


def kernels() -> list[KernelToTune]:
    return kernels_of(place(program()))


def tune(path: Path, trials: int, found: Sequence[KernelToTune] | None = None) -> TunedKernels:
    database = TunedKernels(path)
    Tuner(database, TuneOptions(trials), lambda progress: None).run(found or kernels())
    return database


def test_the_best_schedule_is_found_and_used(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    (kernel,) = kernels()
    database = tune(path, 48)
    chosen = database.schedule(kernel.task.signature, processor_here()[0])
    assert chosen is not None
    assert pretended(chosen) < 0.8 * pretended(Schedule())
    placed = place(program())
    api_text = str(placed.module)
    from xdsl.context import Context

    from isoform.passes.tuning.use_tuned import UseTuned

    UseTuned(str(path)).apply(Context(), placed.module)
    op = next(op for op in placed.main.body.block.ops if isinstance(op, GemmOp))
    assert Schedule.on(op) == chosen
    assert str(placed.module) != api_text


def test_a_gain_within_noise_is_not_used(clock: Clock, tmp_path: Path) -> None:
    clock.spread = 100.0
    (kernel,) = kernels()
    database = tune(tmp_path / "tuned.json", 16)
    assert database.schedule(kernel.task.signature, processor_here()[0]) is None
    entry = database.entry(kernel.task.signature, processor_here()[0])
    assert entry is not None
    assert entry.algorithm == "scheduled"


def test_what_is_in_the_database_is_not_measured_again(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    tune(path, 16)
    first = list(clock.asked)
    tune(path, 16)
    assert clock.asked == first  # nothing is left to do
    tune(path, 32)
    search = clock.asked[len(first) : len(first) + 16]
    assert not set(search) & set(first[:16])


def test_resumed_and_uninterrupted_runs_measure_the_same(clock: Clock, tmp_path: Path) -> None:
    tune(tmp_path / "once.json", 32)
    once = set(clock.asked)
    clock.asked.clear()
    for trials in (8, 16, 24, 32):
        tune(tmp_path / "resumed.json", trials)
    assert set(clock.asked) == once


def test_two_databases_are_merged(clock: Clock, tmp_path: Path) -> None:
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    tune(here, 8)
    clock.processor = "another"
    (kernel,) = kernels()
    answer = clock(TrialRequest(kernel.task, (Schedule.of({"rows": 3}),), 1, 0))
    other = TunedKernels(there)
    other.add_trials(kernel.task.signature, answer, {Schedule.of({"rows": 3}): 0.5})
    mine = processor_here()[0]
    same = TrialAnswer(mine, "a processor", answer.default, answer.trials)
    other.add_trials(kernel.task.signature, same, {Schedule.of({"rows": 3}): 0.5})
    assert cli.main(["tune", "--db", str(here), "--merge", str(there)]) == 0
    merged = TunedKernels(here)
    entry = merged.entry(kernel.task.signature, mine)
    assert entry is not None
    assert len(entry.trials) == 9  # of both files
    assert entry.algorithm == "scheduled"  # the choice of one stays
    apart = merged.entry(kernel.task.signature, "another")
    assert apart is not None
    assert list(apart.trials) == ["rows=3"]  # results of processors are kept apart
    assert set(merged.processors()) == {mine, "another"}


def test_an_interrupt_keeps_all_finished_batches(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, path = tmp_path / "ops.txt", tmp_path / "tuned.json"
    file.write_text(OPS)
    requests: list[int] = []

    def measure(request: TrialRequest) -> TrialAnswer:
        requests.append(1)
        if len(requests) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return clock(request)

    monkeypatch.setattr(tune_kernels, "measure_trials", measure)
    command = ["tune", "--ops", str(file), "--db", str(path), "--trials", "32"]
    assert cli.main(command) == 130
    assert "interrupted: all finished batches are kept" in capfd.readouterr().err
    (entry,) = TunedKernels(path).file.ops.values()
    assert len(entry.trials) == 16
    assert cli.main(command) == 0
    out, err = capfd.readouterr()
    assert "[1/2] product batch=1 m=24 n=48 k=64: 24 trials, 32 at most" in err
    assert "2 of 2 kernels tuned" in out


def test_the_database_is_listed(
    clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tuned.json"
    tune(path, 8)
    assert cli.main(["tune", "--list", "--db", str(path)]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["kernel", "key", "processor", "trials"]
    assert line.startswith("gemm 24x64, 64x48 ")
    assert cli.main(["tune", "--list", "--json", "--db", str(path)]) == 0
    assert '"trials"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("matmul m=1 k=2", ":1: 'matmul' needs n="),
        ("# none\n", "the file lists no operators"),
        ("\nmatmull m=1", ":2: unknown operator 'matmull'"),
        ("conv c=4 f=4 size=8x8 kernel=3x3x3", "a number for each of size"),
        ("matmul m=1 k=x n=2", "expected NAME=NUMBER or NAME=AxB"),
        ("matmul m=1 k=2 n=3 q=4", "'matmul' has no 'q'"),
    ],
)
def test_a_broken_list_of_operators_is_one_line(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ops.txt"
    file.write_text(text)
    assert cli.main(["tune", "--ops", str(file), "--db", str(tmp_path / "db.json")]) == 1
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


def test_a_broken_database_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tuned.json"
    path.write_text("{")
    assert cli.main(["tune", "--list", "--db", str(path)]) == 1
    assert cli.main(["tune", "--db", str(path)]) == 2  # nothing to do
    absent = str(tmp_path / "none.json")
    assert cli.main(["tune", "--db", str(tmp_path / "new.json"), "--merge", absent]) == 1
    assert capsys.readouterr().err.count("\n") == 3


def test_trials_are_measured_beside_the_default() -> None:
    (kernel,) = kernels()
    schedules = tuple(kernel.space.shortlist[:2])
    answer = measure_trials(TrialRequest(kernel.task, schedules, 3, 0))
    assert answer.processor == processor_here()[0]
    assert len(answer.trials) == 2
    assert all(t.ratio is not None and t.ratio > 0 and t.error < 1e-5 for t in answer.trials)
    assert answer.trials[0].error == 0.0  # the default itself


@pytest.mark.skipif(not is_available(), reason="scikit-learn is not installed")
def test_a_model_learns_from_trials(clock: Clock, tmp_path: Path) -> None:
    import random

    from isoform.passes.tuning.schedule_cost import KnownTrials, learned

    (kernel,) = kernels()
    r, space = random.Random(0), kernel.space
    drawn = [s for s in (space.drawn(r) for _ in range(80)) if s is not None]
    ratios = {s: pretended(s) / pretended(Schedule()) for s in drawn[:60]}
    model = learned([KnownTrials(space, dict(ratios))], 0)
    rest = [s for s in drawn[60:] if s not in ratios]
    guessed = model.predict(space, rest)
    known = [pretended(s) for s in rest]
    assert np.corrcoef(guessed, known)[0, 1] > 0.7
    assert model.predict(space, rest) == guessed


def test_compile_uses_what_was_tuned(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))
    source = program()
    inputs = {"x": np.random.default_rng(1).standard_normal((24, 64)).astype(np.float32)}
    before = api.compile(source, threads=1).run(None, inputs)
    (tmp_path / "costs").mkdir(exist_ok=True)
    tune(tmp_path / "costs" / "tuned.json", 32)
    session = api.compile(source, threads=1)  # not the stored one
    texts = [op for op in session.runner.program.main.body.block.ops if isinstance(op, GemmOp)]
    assert Schedule.on(texts[0]).entries
    (found,) = session.run(None, inputs)
    np.testing.assert_allclose(found, before[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found, reference.run(source, inputs)["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("trials", [64, 10**9])
def test_the_time_left_is_that_of_the_kernels_before(
    trials: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(tune_command.time, "monotonic", lambda: now[0])
    kernel = kernels_of(place(program(), CpuOptions(1)))[0]
    told, lines = tune_command.Told(started=0.0), list[str]()
    for number, tried in ((0, 16), (0, 32), (1, 16), (3, 16)):  # the third was in the database
        now[0] += 16.0
        told(Progress(kernel, number, 100, tried, trials, 0.9))
        lines.append(capsys.readouterr().err.rpartition("about ")[2].strip())
    # A second a trial: at first 48 trials each, then 32 as the first kernel had, then 24.
    assert lines == ["1:19:44 left", "1:19:28 left", "52:32 left", "38:32 left"]
