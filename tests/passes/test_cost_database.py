"""Measured choices do not survive the kernels that they were measured with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isoform.dialects import files
from isoform.dialects.cache_folder import CacheFolder
from isoform.lowering.kernel_to_cpu import measurement_key
from isoform.passes.cost.cost_file import CostFile, Measured
from isoform.passes.subprograms.decisions import Decision, DecisionRecord
from isoform.passes.tuning.database import (
    MAX_OTHERS,
    add_choices,
    database_path,
    prune,
    read_choices,
)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))
    return tmp_path


def kernels_of(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """Pretend that the sources of the kernels are these."""
    monkeypatch.setattr(measurement_key, "_of_sources", lambda: state)


def test_a_changed_source_is_another_hash(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    file = folder / "gemm.py"
    file.write_text("rows = 6\n")
    before = files.hash_of_sources([folder])
    os.utime(file, (1, 1))
    assert files.hash_of_sources([folder]) == before, "the contents count, not the time"
    file.write_text("rows = 8\n")
    changed = files.hash_of_sources([folder])
    file.rename(folder / "conv.py")
    renamed = files.hash_of_sources([folder])
    (folder / "products").mkdir()
    (folder / "conv.py").rename(folder / "products" / "conv.py")
    assert len({before, changed, renamed, files.hash_of_sources([folder])}) == 4


def test_every_source_that_is_hashed_is_there() -> None:
    root = Path(measurement_key.__file__).resolve().parents[2]
    for name in measurement_key.SOURCES:
        path = root / name
        assert path.suffix == ".py" or any(path.glob("*.py")), name
        assert path.exists(), name


def test_choices_of_other_kernels_are_not_found(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = CostFile("cpu")
    new.add(Measured("conv", 1.0, 1.0, 1.0, "winograd-f4"))
    kernels_of(monkeypatch, "old")
    path = database_path()
    assert path is not None
    path.parent.mkdir()
    add_choices(path, new, broken_is_empty=True)
    kernels_of(monkeypatch, "new")
    upgraded = database_path()
    assert upgraded is not None
    assert read_choices(upgraded, broken_is_empty=True).ops == {}
    kernels_of(monkeypatch, "old")
    assert database_path() == path
    assert len(read_choices(path, broken_is_empty=True).ops) == 1


def test_decisions_of_other_kernels_are_not_found(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = DecisionRecord(CacheFolder(cache))
    decision = Decision(None, 0.0, 1.0, 2.0, "measured", "finished", "3 programs")
    kernels_of(monkeypatch, "old")
    memory.save(["scope"], decision)
    assert memory.load(["scope"]) == decision
    kernels_of(monkeypatch, "new")
    assert memory.load(["scope"]) is None


def test_the_files_written_longest_ago_go(tmp_path: Path) -> None:
    files = [tmp_path / f"cpu-{k}.json" for k in range(MAX_OTHERS + 3)]
    for age, file in enumerate(files):
        for one in (file, file.with_suffix(".lock")):
            one.write_text("")
            os.utime(one, (1e9 - age, 1e9 - age))
    bystander = tmp_path / "my-costs.json"
    bystander.write_text("")
    prune(files[-1])  # the oldest, but it is in use
    left = {*files[:MAX_OTHERS], files[-1]}
    expected = {*left, *(file.with_suffix(".lock") for file in left), bystander}
    assert set(tmp_path.iterdir()) == expected
