"""Work on a Dask cluster: a worker that dies loses nothing, other code is refused."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from isoform.compiler import cli
from isoform.compiler.targets.levels import place
from isoform.dialects import cluster as cluster_module
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.cluster import cluster
from isoform.dialects.errors import UserError
from isoform.passes.tuning.measure_schedules import processor_here
from isoform.passes.tuning.tune_kernels import Progress, TuneOptions, Tuner, kernels_of
from isoform.passes.tuning.tuned_kernels import TunedKernels

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    """A scheduler on this machine with two workers, processes of one thread."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with distributed.LocalCluster(**options, dashboard_address=None) as local:
        yield local.scheduler_address


def test_tuning_by_two_workers_of_which_one_is_killed_loses_nothing(
    address: str, tmp_path: Path
) -> None:
    b = GraphBuilder()
    b.output("y", b.matmul(b.input("x", (24, 64)), b.input("z", (64, 48))))
    kernels = kernels_of(place(b.build()))
    database = TunedKernels(tmp_path / "tuned.json")
    killed: list[int] = []
    with cluster(address) as executor:

        def tell(progress: Progress) -> None:
            if not killed:  # the next batch begins without it
                pids = sorted(executor.client.run(os.getpid).values())
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        Tuner(database, TuneOptions(24, executor=executor, apart=True), tell).run(kernels)
        assert killed
    (entry,) = database.file.ops.values()
    assert len(entry.trials) == 24
    assert None not in entry.trials.values()
    assert entry.algorithm == "scheduled"
    assert processor_here()[0] in database.processors()


def test_items_of_a_killed_worker_are_done_by_another(address: str) -> None:
    with cluster(address) as executor:
        done: set[int] = set()
        pids = list(executor.client.run(os.getpid).values())

        def keep(number: int, result: None) -> None:
            done.add(number)
            if len(done) == 2:
                os.kill(pids[0], signal.SIGKILL)

        executor.run(time.sleep, [0.2] * 10, keep)
    assert done == set(range(10))


def test_workers_with_other_code_are_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "hash_of_sources", lambda paths: "another")  # here only
    with pytest.raises(UserError, match="a worker has other code"), cluster(address):
        pass


def test_no_scheduler_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE", 1)
    file = tmp_path / "ops.txt"
    file.write_text("matmul m=8 k=8 n=8\n")
    command = ["tune", "--ops", str(file), "--db", str(tmp_path / "db.json")]
    assert cli.main([*command, "--cluster", "tcp://127.0.0.1:9"]) == 1
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("isoform: error: tcp://127.0.0.1:9: no Dask scheduler answers")
