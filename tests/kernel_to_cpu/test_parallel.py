"""Compiling side by side: the same objects as alone, whatever happens to the helpers."""

import os
import sys
from collections.abc import Iterator

import pytest

from isoform.dialects import executor
from isoform.dialects.executor import Worker, kept_workers
from isoform.lowering.kernel_to_cpu.emit.module import Module, kernel
from isoform.lowering.kernel_to_cpu.emit.types import F32, constant
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.runtime import parallel
from isoform.lowering.kernel_to_cpu.runtime.cores import physical_cores, processors
from isoform.lowering.kernel_to_cpu.runtime.jit import compile_object
from isoform.lowering.kernel_to_cpu.runtime.parallel import LEAST_MODULES, compile_objects


def text(number: float) -> str:
    code = kernel(Module(), 1, 1, lambda b, p, low, high: b.store(constant(F32, number), p[0]))
    return code.ir


TEXTS = [text(float(k)) for k in range(12)]


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "processors", lambda: 2)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Worker]]:
    """The workers that are started; all have ended afterwards."""
    workers: list[Worker] = []

    class Counted(Worker):
        def __init__(self) -> None:
            super().__init__()
            workers.append(self)

    monkeypatch.setattr(executor, "Worker", Counted)
    yield workers
    assert all(worker.process.poll() is not None for worker in workers)


def compiled(texts: list[str]) -> list[bytes]:
    kept: dict[int, bytes] = {}
    found = compile_objects(texts, Isa.host(), kept.__setitem__)
    assert kept == dict(enumerate(found))
    return found


def alone() -> list[bytes]:
    return [compile_object(ir, Isa.host()) for ir in TEXTS]


def test_objects_are_the_same_as_without_help(started):
    assert compiled(TEXTS) == alone()
    assert len(started) == 1


def test_few_modules_start_nobody(started):
    assert compiled(TEXTS[: LEAST_MODULES - 1]) == alone()[: LEAST_MODULES - 1]
    assert started == []


def test_workers_are_kept_inside_the_block(started):
    with kept_workers():
        for _ in range(3):
            assert compiled(TEXTS) == alone()
    assert len(started) == 1


def test_a_worker_that_dies_is_done_without(started, monkeypatch):
    receive = executor.receive

    def dying(stream):
        started[0].process.kill()
        return receive(stream)

    monkeypatch.setattr(executor, "receive", dying)
    assert compiled(TEXTS) == alone()


def test_a_worker_that_cannot_start_is_done_without(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert compiled(TEXTS) == alone()


@pytest.mark.parametrize("attribute", ["frozen", "executable"])
def test_an_interpreter_that_cannot_be_started_again_works_alone(started, monkeypatch, attribute):
    monkeypatch.setattr(
        sys, attribute, {"frozen": True, "executable": ""}[attribute], raising=False
    )
    assert compiled(TEXTS) == alone()
    assert started == []


def test_a_module_that_does_not_compile_is_the_same_error(started):
    with pytest.raises(RuntimeError, match="parsing error"):
        compiled([*TEXTS, "define void @f( {"])


def test_an_interrupt_ends_the_workers(started):
    def interrupted(number: int, data: bytes) -> None:
        raise KeyboardInterrupt

    with kept_workers(), pytest.raises(KeyboardInterrupt):
        compile_objects(TEXTS, Isa.host(), interrupted)
    assert len(started) == 1


def test_processors_of_one_core_count_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5}, raising=False)
    for number, (package, core) in enumerate([(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 0)]):
        folder = tmp_path / f"cpu{number}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
        (folder / "core_id").write_text(f"{core}\n")
    assert processors() == 4
    assert physical_cores(tmp_path) == 3
    assert physical_cores(tmp_path / "nothing") == 4
