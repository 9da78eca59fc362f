"""Limits that decide results are counts: a busy machine gives what an idle one gives."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from support.search_program_forms import with_weights
from support.search_programs import ORIGINALS

import isoform
from isoform.passes.work_clock import charge, counted, now, wall_seconds


def optimized(monkeypatch: pytest.MonkeyPatch, cache: Path, second: float) -> str:
    """A program for which saturation comes to its limit, optimised where clocks tick when read.

    Args:
        second: what passes between two readings: more where other programs run, too.
    """
    readings = itertools.count()
    with monkeypatch.context() as patched:
        patched.setenv("ISOFORM_CACHE", str(cache))
        for name in ("perf_counter", "process_time", "monotonic"):
            patched.setattr(time, name, lambda: next(readings) * second)
        before = with_weights(isoform.load(ORIGINALS / "gru.mlir"))
        found = isoform.optimize(before, "h100", budget=30.0)
    assert any(search["stop_reason"] == "time" for search in found.report["searches"])
    return str(found.module)


def test_a_busy_machine_gives_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    idle = optimized(monkeypatch, tmp_path / "idle", 1e-5)
    assert optimized(monkeypatch, tmp_path / "busy", 5e-3) == idle


def test_work_is_counted_until_the_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: wall)
    with counted(stop=10.0):
        charge(1.5)
        wall = 9.0
        assert now() == 1.5 and wall_seconds(0.1) == 1.0
        wall = 10.0
        assert now() > 1e6 and wall_seconds(0.1) == 0.0
    assert now() == 10.0 and wall_seconds(0.1) == 0.1
