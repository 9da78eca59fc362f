"""`isoform tune --reuse`: few kernels are tuned in full, the others start from their schedules."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from isoform.compiler import cli, zoo
from isoform.compiler.commands.operator_list import read_operators
from isoform.compiler.targets.levels import place
from isoform.dialects.program import Program
from isoform.dialects.schedule import Schedule
from isoform.passes.reuse import ReusePlan, operator_of
from isoform.passes.reuse.nest import OperatorNest
from isoform.passes.tuning import tune_kernels
from isoform.passes.tuning.measure_schedules import Trial, TrialAnswer, TrialRequest, processor_here
from isoform.passes.tuning.reuse_rounds import MAX_TRIALS, ROLES, ReuseRounds, Side
from isoform.passes.tuning.reuse_tuner import ReuseTuner
from isoform.passes.tuning.tune_kernels import KernelToTune, TuneOptions, kernel_from, kernels_of
from isoform.passes.tuning.tuned_kernels import TunedKernels

FAMILY = "".join(f"matmul m={m} k=64 n=64\n" for m in (16, 32, 64, 128))
APART = "matmul m=16 k=128 n=64\nmatmul m=64 k=32 n=64\n"


def pretended(schedule: Schedule) -> float:
    """Seconds that follow from the schedule alone: the best has 5 rows and no unrolling."""
    entries = schedule.as_dict()
    return 1e-5 * (1 + abs(int(entries.get("rows", 12)) - 5) + int(entries.get("unroll", 4)))


class Clock:
    """Pretends to measure, and counts."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, request: TrialRequest) -> TrialAnswer:
        self.asked += [(request.task.signature, s.text) for s in request.schedules]
        seconds = [pretended(schedule) for schedule in (Schedule(), *request.schedules)]
        trials = [Trial(s, s, s, s / seconds[0], s / seconds[0], 0.0) for s in seconds]
        return TrialAnswer(processor_here()[0], "a processor", trials[0], tuple(trials[1:]))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(tune_kernels, "measure_trials", found)
    return found


def kernels(text: str, folder: Path) -> list[KernelToTune]:
    path = folder / "operators.txt"
    path.write_text(text)
    return kernels_of(place(read_operators(path)))


def lowered(program: Program) -> Program:
    return place(program)


def run(text: str, folder: Path, hops: int = 0, trials: int = 48) -> tuple[ReusePlan, TunedKernels]:
    database = TunedKernels(folder / "tuned.json")
    tuner = ReuseTuner(database, TuneOptions(trials), lambda progress: None)
    return tuner.run_plan(kernels(text, folder), hops, lowered), database


def test_a_family_is_tuned_once_in_full(clock: Clock, tmp_path: Path) -> None:
    plan, database = run(FAMILY, tmp_path)
    assert (plan.in_full, len(plan.arcs)) == (1, 4)
    counts = [len(entry.trials) for entry in database.file.ops.values()]
    assert len(counts) == 4
    assert sorted(counts)[-2] <= MAX_TRIALS < sorted(counts)[-1]
    for kernel in kernels(FAMILY, tmp_path):
        chosen = database.schedule(kernel.task.signature, processor_here()[0])
        assert chosen is not None
        assert chosen.as_dict()["rows"] in (4, 5, 6)
        assert kernel.space.refusal(chosen) is None


def test_what_is_decided_costs_nothing_and_serves_others(clock: Clock, tmp_path: Path) -> None:
    run("matmul m=32 k=64 n=64\n", tmp_path)
    before = len(clock.asked)
    plan, _ = run(FAMILY, tmp_path)
    assert [arc.cost for arc in plan.arcs if arc.parent is None] == [0.0]
    assert len(clock.asked) - before <= 3 * (MAX_TRIALS + 3)
    after = len(clock.asked)
    run(FAMILY, tmp_path)
    assert len(clock.asked) == after


def test_another_programs_kernels_serve_a_new_extent(clock: Clock, tmp_path: Path) -> None:
    """The nearest of them is the parent."""
    run("matmul m=32 k=64 n=64\nmatmul m=256 k=64 n=64\n", tmp_path)
    before = len(clock.asked)
    plan, database = run("matmul m=224 k=64 n=64\n", tmp_path)
    assert (plan.in_full, plan.known) == (0, 1)
    assert [arc.parent.text for arc in plan.arcs if arc.parent] == ["matmul [1, 256, 64 | 64]"]
    assert len(clock.asked) - before <= MAX_TRIALS + 3
    assert len(database.file.ops) == 3


@pytest.mark.parametrize("name", ["dcgan", "squeezenet", "bert-base"])
def test_a_kernel_is_read_back_from_its_signature(name: str) -> None:
    sizes = {"layers": 1, "vocabulary": 8} if name == "bert-base" else {}
    found = kernels_of(place(zoo.build(name, **sizes)))
    assert len(found) > 4
    for kernel in found:
        again = kernel_from(kernel.task.signature)
        assert again is not None
        assert (again.nest, again.space.kind) == (kernel.nest, kernel.space.kind)
        assert again.space.dimensions == kernel.space.dimensions


def test_a_bridge_is_tuned_where_it_saves_a_tuning_in_full(clock: Clock, tmp_path: Path) -> None:
    direct, _ = run(APART, tmp_path, hops=0)
    assert direct.in_full == 2
    folder = tmp_path / "bridges"
    folder.mkdir()
    plan, database = run(APART, folder, hops=1)
    assert plan.in_full == 1
    assert [nest.text for nest in plan.bridges] == ["matmul [1, 16, 64 | 32]"]
    assert len(database.file.ops) == 3


def test_the_command_follows_a_plan(
    clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "family.txt"
    path.write_text(FAMILY)
    arguments = ["tune", "--ops", str(path), "--db", str(tmp_path / "t.json"), "--trials", "32"]
    assert cli.main([*arguments, "--reuse", "direct"]) == 0
    printed = capsys.readouterr()
    assert "4 of 4 kernels tuned" in printed.out
    assert "4 nests, 0 known, 1 tuned in full, 0 bridges" in printed.err


@pytest.mark.parametrize("seed", range(6))
def test_all_rounds_propose_valid_schedules(seed: int, tmp_path: Path) -> None:
    text = (
        FAMILY
        + APART
        + "conv c=16 f=32 size=14x14 kernel=1x1\nconv c=32 f=32 size=28x28 kernel=1x1\n"
    )
    found = kernels(text, tmp_path)
    draws = random.Random(seed)
    tried = 0
    for b in found:
        for a in found:
            if a is b or a.nest.group != b.nest.group:
                continue
            known = b.space.drawn(draws)
            assert known is not None
            rounds = ReuseRounds(Side(a.nest, a.space), Side(b.nest, b.space), known)
            start = rounds.start()
            made = [start, *(s for propose in rounds.rounds() for s in propose(start))]
            assert len(made) <= MAX_TRIALS
            assert [a.space.refusal(schedule) for schedule in made] == [None] * len(made)
            tried += 1
    assert tried >= 20


def test_every_entry_of_every_table_has_a_role() -> None:
    from isoform.lowering.kernel_to_cpu.products import conv_space, product_space
    from isoform.lowering.kernel_to_nest import forms
    from isoform.lowering.schedule_space import ScheduleTable

    tables = [
        value
        for module in (conv_space, product_space, forms)
        for value in vars(module).values()
        if isinstance(value, ScheduleTable)
    ]
    assert len(tables) >= 6
    assert {d.name for table in tables for d in table.dimensions} <= set(ROLES)


def test_an_equal_kernel_starts_at_the_known_schedule(tmp_path: Path) -> None:
    a, b = kernels("matmul m=32 k=64 n=64\nmatmul m=64 k=64 n=64\n", tmp_path)
    known = Schedule.of(b.space.complete({"rows": 4, "unroll": 2}))
    start = ReuseRounds(Side(a.nest, a.space), Side(b.nest, b.space), known).start().as_dict()
    assert (start["rows"], start["unroll"]) == (4, 2)


@pytest.mark.parametrize(
    ("kind", "space", "reduction"),
    [
        ("matmul", (1, 24, 48), (32,)),
        ("conv2d", (1, 32, 14, 14), (16, 3, 3)),
        ("conv1d", (2, 32, 14), (16, 3)),
        ("depthwise-conv2d", (1, 32, 14, 14), (3, 3)),
        ("grouped-conv2d", (1, 4, 8, 14, 14), (8, 3, 3)),
    ],
)
def test_a_bridges_operator_has_its_nest(
    kind: str, space: tuple[int, ...], reduction: tuple[int, ...]
) -> None:
    from isoform.compiler.pipelines import LOWER_TO_KERNEL
    from isoform.compiler.targets.levels import run_passes
    from isoform.passes.reuse import nests_of

    ones = (1,) * (0 if kind == "matmul" else int(kind[-2]))
    nest = OperatorNest(kind, ("multi-level-tile",), space, reduction, ones, ones, (0,) * len(ones))
    program = operator_of(nest, constant=True)
    assert program is not None
    for name in LOWER_TO_KERNEL:
        run_passes(program, name)
    assert nest in nests_of(program)
