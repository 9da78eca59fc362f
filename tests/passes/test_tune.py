"""tune: choices come from measurements, respect the tolerance, and are kept in the cost file."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context

from isoform.compiler import api, cli
from isoform.compiler.frontends.program_file import parse
from isoform.compiler.pipelines import LOWER_TO_KERNEL
from isoform.compiler.targets.levels import place, run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.kernel import ConvOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.passes.cost.cost_file import CostFile, Measured, load_cost_file
from isoform.passes.tuning import Tune
from isoform.passes.tuning import tune as tune_module
from isoform.passes.tuning.database import add_choices
from isoform.passes.tuning.measure_alternatives import Measurement
from isoform.passes.tuning.note import note_of


def program(window: tuple[int, int] = (3, 3)) -> Program:
    b = GraphBuilder()
    x = b.input("x", (1, 32, 24, 24))
    weights = np.random.default_rng(0).standard_normal((32, 32, *window)).astype(np.float32)
    w = b.weight("w", weights)
    geometry = {"strides": [1, 1], "pads": [n // 2 for n in window] * 2, "dilations": [1, 1]}
    y = b.relu(b.conv(x, w, **geometry))
    b.output("y", b.conv(y, w, **geometry))
    built = b.build()
    for name in LOWER_TO_KERNEL:
        run_passes(built, name)
    return built


def read(written: Program) -> Program:
    """The program as it comes back from its text."""
    parsed = parse(str(written.module))
    return Program(parsed.module, written.weights)


def convolutions(p: Program) -> int:
    return sum(isinstance(op, ConvOp) for op in p.main.body.block.ops)


def pretend(monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float], error: float) -> list[int]:
    """Replace the clock: what is chosen must follow from the numbers alone. Counts measurements."""
    calls: list[int] = []

    def measure(op, constants, choices, seed):  # type: ignore[no-untyped-def]
        calls.append(1)
        return [
            Measurement(c, s := seconds[c.name], s, s, 0.0 if c.exact else error) for c in choices
        ]

    monkeypatch.setattr(tune_module, "measure", measure)
    return calls


FASTER_F4 = {"direct": 3.0, "winograd-f2": 2.0, "winograd-f4": 1.0}


def test_the_fastest_allowed_way_is_chosen_once_per_contraction(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = pretend(monkeypatch, FASTER_F4, error=1e-6)
    first = program()
    Tune(cost_file=str(tmp_path / "costs.json")).apply(Context(), first.module)
    assert convolutions(first) == 0
    assert len(calls) == 1  # both convolutions are the same contraction
    entries = json.loads((tmp_path / "costs.json").read_text())["ops"]
    assert [entry["algo"] for entry in entries.values()] == ["winograd-f4"]


def test_a_cost_file_makes_the_same_choice_without_measuring(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = pretend(monkeypatch, FASTER_F4, error=1e-6)
    file = str(tmp_path / "costs.json")
    first, second = program(), program()
    Tune(cost_file=file).apply(Context(), first.module)
    Tune(cost_file=file).apply(Context(), second.module)
    assert len(calls) == 1
    assert str(first.module) == str(second.module)


def test_the_tolerance_keeps_inexact_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FASTER_F4, error=1e-4)
    found = program()
    Tune().apply(Context(), found.module)
    assert convolutions(found) == 2


def test_a_gain_within_noise_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"direct": 1.0, "winograd-f2": 0.99, "winograd-f4": 0.98}, error=0.0)
    found = program()
    Tune().apply(Context(), found.module)
    assert convolutions(found) == 2


ONE_FORM = ["direct", "winograd-f2", "winograd-f4"]


@pytest.mark.parametrize(
    ("window", "names"),
    [
        ((3, 3), ONE_FORM),
        ((2, 2), ["direct", "winograd-f3"]),
        ((1, 7), [*ONE_FORM, "winograd-f4-blocks"]),
        ((5, 1), [*ONE_FORM, "winograd-f4-blocks"]),
        ((5, 5), ONE_FORM),
        ((1, 11), ["direct", "winograd-f4-taps4", "winograd-f4-taps4-blocks"]),
    ],
)
def test_measuring_for_real_gives_times_and_errors(
    window: tuple[int, int], names: list[str]
) -> None:
    from isoform.lowering.algebra_to_kernel.constant import constant_values
    from isoform.lowering.targets import CPU
    from isoform.passes.tuning.alternatives import alternatives
    from isoform.passes.tuning.measure_alternatives import measure

    p = program(window)
    op = next(op for op in p.main.body.block.ops if isinstance(op, ConvOp))
    constants = constant_values(p.module)
    choices = alternatives(op, constants, CPU.generator(), "default")
    results = measure(op, constants, choices, seed=0)
    assert [r.alternative.name for r in results] == names
    assert all(r.seconds > 0 for r in results)
    assert results[0].error == 0.0
    assert all(0.0 < r.error < 1e-5 for r in results[1:])


def test_a_spare_form_is_measured_where_the_larger_one_errs_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = {**FASTER_F4, "winograd-f4-blocks": 2.5}
    asked: list[list[str]] = []

    def measure(op, constants, choices, seed):  # type: ignore[no-untyped-def]
        asked.append([c.name for c in choices])
        error = {"winograd-f4": 1e-4, "winograd-f4-blocks": 1e-4, "winograd-f2": 1e-6}
        return [Measurement(c, seconds[c.name], 0.0, 0.0, error.get(c.name, 0.0)) for c in choices]

    monkeypatch.setattr(tune_module, "measure", measure)
    strict, loose = program((1, 7)), program((1, 7))
    Tune().apply(Context(), strict.module)
    assert asked == [["direct", "winograd-f4", "winograd-f4-blocks"], ["direct", "winograd-f2"]]
    assert convolutions(strict) == 0
    asked.clear()
    Tune(tolerance=1e-3).apply(Context(), loose.module)
    assert asked == [["direct", "winograd-f4", "winograd-f4-blocks"]]


def test_the_database_is_shared_and_a_broken_one_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = pretend(monkeypatch, FASTER_F4, error=1e-6)
    file = tmp_path / "costs" / "cpu.json"
    for _ in range(2):
        Tune(database=str(file)).apply(Context(), program().module)
    assert len(calls) == 1
    file.write_text("{")
    Tune(database=str(file)).apply(Context(), program().module)
    assert len(calls) == 2
    assert capsys.readouterr().err.count("\n") == 1
    Tune(database=str(file)).apply(Context(), program().module)
    assert len(calls) == 2
    assert capsys.readouterr().err == ""


def test_a_broken_cost_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    file.write_text("{")
    with pytest.raises(UserError, match="not JSON"):
        Tune(cost_file=str(file)).apply(Context(), program().module)
    assert file.read_text() == "{"


def test_a_database_that_cannot_be_written_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, FASTER_F4, error=1e-6)
    (tmp_path / "file").write_text("")
    found = program()
    Tune(database=str(tmp_path / "file" / "cpu.json")).apply(Context(), found.module)
    assert convolutions(found) == 0


def test_writers_of_one_database_lose_nothing(tmp_path: Path) -> None:
    def write(number: int) -> None:
        new = CostFile("cpu")
        new.add(Measured(f"signature {number}", 1.0, 1.0, 1.0))
        add_choices(tmp_path / "cpu.json", new, broken_is_empty=True)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(load_cost_file(tmp_path / "cpu.json").ops) == 16


def test_what_was_gained_is_noted_on_the_op(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where the choice comes from the cost file."""
    pretend(monkeypatch, FASTER_F4, error=1e-6)
    for _ in range(2):
        found = program()
        Tune(cost_file=str(tmp_path / "costs.json")).apply(Context(), found.module)
        notes = [n for op in found.main.body.block.ops if (n := note_of(op)) is not None]
        assert [note["rule"] for note in notes] == ["winograd-f4"] * 2
        assert [note["delta"] for note in notes] == [-2.0] * 2
        assert [note["error"] for note in notes] == [1e-6] * 2


def test_small_convolutions_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pretend(monkeypatch, FASTER_F4, error=0.0)
    monkeypatch.setattr("isoform.passes.tuning.alternatives.LEAST_MACS", 1 << 40)
    found = program()
    Tune().apply(Context(), found.module)
    assert (convolutions(found), calls) == (2, [])


@pytest.mark.parametrize("times", [FASTER_F4, {"direct": 1.0, "winograd-f2": 2, "winograd-f4": 2}])
def test_a_written_program_keeps_its_choices_and_is_not_measured_again(
    monkeypatch: pytest.MonkeyPatch, times: dict[str, float]
) -> None:
    calls = pretend(monkeypatch, times, error=1e-6)
    made = program()
    Tune().apply(Context(), made.module)
    written = read(made)
    before = str(written.module)
    Tune().apply(Context(), written.module)
    assert len(calls) == 1
    assert str(written.module) == before


def test_a_written_register_block_is_the_one_that_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(op, constants, choices, seed):  # type: ignore[no-untyped-def]
        best = choices[-1]  # the register block that is guessed to be the slowest
        return [Measurement(c, s := float(c is not best), s, s, 0.0) for c in choices]

    monkeypatch.setattr(tune_module, "measure", measure)
    made = program()
    Tune(effort="max").apply(Context(), made.module)
    written = read(made)
    symbols = [
        {call.code.symbol for segment in CpuSession(place(p)).segments for call in segment.calls}
        for p in (program(), made, written)
    ]
    assert symbols[1] == symbols[2] != symbols[0]


def test_what_optimize_writes_holds_what_was_measured(tmp_path: Path) -> None:
    source, out = tmp_path / "net.mlir", tmp_path / "out.mlir"
    b = GraphBuilder()
    w = b.weight("w", np.ones((32, 32, 3, 3), np.float32) / 288)
    geometry = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    b.output("y", b.conv(b.input("x", (1, 32, 24, 24)), w, **geometry))
    api.save(b.build(), source)
    flags = ("--strategy", "saturate", "--budget", "60")
    for effort, marked in (("quick", False), ("default", True)):
        assert cli.main(["optimize", str(source), "-o", str(out), *flags, "--effort", effort]) == 0
        text = out.read_text()
        assert ("algorithm = " in text) == ("tune{effort=" in text) == marked
