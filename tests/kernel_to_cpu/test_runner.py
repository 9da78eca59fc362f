import gc
import os
import threading
import time

import numpy as np
import pytest

from isoform.lowering.kernel_to_cpu.emit.module import Module, kernel
from isoform.lowering.kernel_to_cpu.emit.types import I64
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.runtime.jit import Library, compile_object
from isoform.lowering.kernel_to_cpu.runtime.runner import ROW, KernelTable, Pool, TableRunner


class Counter:
    """A program that adds 1 to each of `items` numbers, `rows` times."""

    def __init__(self, items: int, rows: int) -> None:
        def body(b, pointers, low, high):
            with b.loop(low, high) as i:
                b.store(b.add(b.load(I64, pointers[0], i), 1), pointers[0], i)

        code = kernel(Module(), 1, items, body)
        self.library = Library([compile_object(code.ir, Isa.host())])
        self.numbers = np.zeros(items + 1, np.int64)
        self.arguments = np.array([self.numbers.ctypes.data], np.uint64)
        table = np.zeros(rows, ROW)
        table["fn"] = self.library.address(code.symbol)
        table["args"] = self.arguments.ctypes.data
        table["items"] = items
        self.table = KernelTable(table)
        self.rows = rows

    def check(self, runs: int = 1) -> None:
        assert (self.numbers[:-1] == runs * self.rows).all()
        assert self.numbers[-1] == 0


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("items", [1, 2, 3, 100])
def test_every_item_of_every_row_runs_once(threads, items):
    program = Counter(items, rows=50)
    with Pool(threads) as pool:
        runner = TableRunner(pool)
        for _ in range(3):
            runner.run(program.table)
        assert runner.calls == 3
    program.check(runs=3)


def test_an_empty_table_is_fine():
    with Pool(2) as pool:
        TableRunner(pool).run(KernelTable(np.zeros(0, ROW)))


def test_a_row_without_items_does_nothing():
    program = Counter(4, rows=3)
    program.table.rows["items"] = 0
    with Pool(2) as pool:
        TableRunner(pool).run(program.table)
    assert not program.numbers.any()


def test_a_pool_needs_a_thread():
    with pytest.raises(ValueError, match="at least one thread"):
        Pool(0)


def test_a_closed_pool_runs_on_the_caller():
    program = Counter(10, rows=5)
    pool = Pool(2)
    pool.close()
    pool.close()
    TableRunner(pool).run(program.table)
    program.check()


def test_several_pools_live_side_by_side():
    first, second = Counter(10, rows=20), Counter(10, rows=20)
    with Pool(2) as one, Pool(3) as other:
        for _ in range(5):
            TableRunner(one).run(first.table)
            TableRunner(other).run(second.table)
    first.check(5)
    second.check(5)


def test_threads_that_share_a_pool_take_turns():
    programs = [Counter(10, rows=200) for _ in range(4)]
    with Pool(2) as pool:
        runner = TableRunner(pool)
        threads = [threading.Thread(target=runner.run, args=(p.table,)) for p in programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for program in programs:
        program.check()


def cpu_seconds_asleep(seconds: float) -> float:
    before = time.process_time()
    time.sleep(seconds)
    return time.process_time() - before


def test_an_idle_pool_costs_no_time_and_wakes():
    program = Counter(10, rows=5)
    with Pool(2) as pool:
        runner = TableRunner(pool)
        runner.run(program.table)
        # On a busy machine a worker may come to its sleep late.
        assert any(cpu_seconds_asleep(0.5) < 0.1 for _ in range(120))
        runner.run(program.table)
    program.check(2)


@pytest.mark.skipif(
    len(getattr(os, "sched_getaffinity", lambda _: ())(0)) < 2, reason="needs two cores, on Linux"
)
def test_a_sleeping_worker_shuns_one_core_and_a_running_one_none():
    program = Counter(10, rows=5)
    cores = os.sched_getaffinity(0)
    with Pool(2) as pool:
        runner = TableRunner(pool)
        runner.run(program.table)
        (worker,) = (thread.native_id for thread in pool.workers)
        deadline = time.monotonic() + 600
        while os.sched_getaffinity(worker) == cores and time.monotonic() < deadline:
            time.sleep(0.01)  # it is not asleep yet
        assert len(cores - os.sched_getaffinity(worker)) == 1
        deadline = time.monotonic() + 600
        running = set[int]()  # read once a turn: it may sleep again before a second look
        while running != cores and time.monotonic() < deadline:
            runner.run(program.table)
            running = os.sched_getaffinity(worker)
        assert running == cores


def test_a_forgotten_pool_stops_its_threads():
    pool = Pool(3)
    workers = list(pool.workers)  # others' threads may end meanwhile: only these are counted
    program = Counter(10, rows=5)
    TableRunner(pool).run(program.table)
    assert [worker.is_alive() for worker in workers] == [True, True]
    del pool
    gc.collect()
    for worker in workers:
        worker.join(timeout=600)
    assert [worker.is_alive() for worker in workers] == [False, False]


PREAMBLE = """
import os, sys, threading
sys.path.insert(0, {folder!r})
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("runner_tests", {file!r})
tests = module_from_spec(spec)
spec.loader.exec_module(tests)
from isoform.lowering.kernel_to_cpu.runtime.runner import Pool, TableRunner
program = tests.Counter(10, rows=20)
pool = Pool(2)
runner = TableRunner(pool)
runner.run(program.table)
"""


@pytest.fixture
def preamble() -> str:
    return PREAMBLE.format(folder=os.getcwd(), file=__file__)


def test_the_interpreter_exits_with_an_open_pool(script, preamble):
    assert script(preamble + "print('done')").strip() == "done"


def test_the_interpreter_exits_after_an_error(script, preamble):
    script(preamble + "threading.Thread(target=lambda: 1 / 0).start(); sys.exit(0)")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_runs_and_leaves(script, preamble, leave):
    text = (
        preamble
        + f"""
pid = os.fork()
if pid == 0:
    program.numbers[:] = 0
    runner.run(program.table)
    program.check()
    {leave}
assert os.waitpid(pid, 0)[1] == 0
runner.run(program.table)
print("parent done")
"""
    )
    assert script(text).strip() == "parent done"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_while_the_pool_is_held_is_not_stuck(script, preamble):
    text = (
        preamble
        + """
pool.lock.acquire()
pid = os.fork()
if pid == 0:
    runner.run(program.table)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("done")
"""
    )
    assert script(text).strip() == "done"
