"""Work in parallel: one function on many items, here and in processes beside this one.

Compilation, rule generation and random testing hand their items to an executor; what runs them is
behind `run`. `LocalExecutor` has processes of this machine. Functions and items travel pickled, a
function by its name, so it must stand at the top of a module.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar, cast

from .executor_worker import receive, send

A = TypeVar("A")
B = TypeVar("B")
_MODULE = f"{__package__}.executor_worker"


class LostError(Exception):
    """A process gave no result: it died, or took longer than it may ("died" or "late")."""


class Worker:
    """A process that computes for this one."""

    def __init__(self) -> None:
        """Start it where this package is found as it is here. Raises OSError where it cannot."""
        paths = os.pathsep.join(path for path in sys.path if path)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
        )
        self.owner = os.getpid()

    def call(self, function: Callable[[A], B], item: A, limit: float = math.inf) -> B:
        """The function's result.

        Raises: what the function raises; LostError if the process died or was late.
        """
        source, target = self.process.stdout, self.process.stdin
        request = pickle.dumps((*name_of(function), item))
        late = threading.Event()
        try:
            with self._ended_after(limit, late):
                send(cast(BinaryIO, target), request)
                data = receive(cast(BinaryIO, source))
        except (OSError, ValueError):
            data = None
        if data is None:
            raise LostError("late" if late.is_set() else "died")
        result, error = pickle.loads(data)
        if error is not None:
            raise error
        return result

    @contextlib.contextmanager
    def _ended_after(self, limit: float, late: threading.Event) -> Generator[None]:
        """End the process where the block takes longer, and set `late`."""
        if limit == math.inf:
            yield
            return

        def end() -> None:
            late.set()
            self.process.kill()

        timer = threading.Timer(limit, end)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def alive(self) -> bool:
        """Whether it can take another item."""
        return self.owner == os.getpid() and self.process.poll() is None

    def end(self) -> None:
        """End the process."""
        if self.owner != os.getpid():
            return
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()


def name_of(function: Callable[..., Any]) -> tuple[str, str]:
    """The module and name of a function; a script's module is its file, whose folder is a path."""
    module = function.__module__
    if module == "__main__":
        module = Path(str(sys.modules["__main__"].__file__)).stem
    return module, function.__qualname__


class _Idle:
    """Workers that wait for more inside `kept_workers`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.workers: list[Worker] = []

    def take(self) -> Worker | None:
        with self.lock:
            while self.workers:
                worker = self.workers.pop()
                if worker.alive:
                    return worker
        return None

    def give(self, worker: Worker) -> None:
        with self.lock:
            if self.depth and worker.alive:
                self.workers.append(worker)
                return
        worker.end()


_idle = _Idle()


@contextlib.contextmanager
def kept_workers() -> Generator[None]:
    """Keep worker processes inside the block, for several runs."""
    with _idle.lock:
        _idle.depth += 1
    try:
        yield
    finally:
        with _idle.lock:
            _idle.depth -= 1
            ended = [] if _idle.depth else _idle.workers[:]
            _idle.workers[:] = _idle.workers if _idle.depth else []
        for worker in ended:
            worker.end()


class Executor(Protocol):
    """Runs a function on many items, somewhere."""

    def run(
        self,
        function: Callable[[A], B],
        items: Sequence[A],
        done: Callable[[int, B], None],
        lost: Callable[[int, LostError], None] | None = None,
    ) -> None:
        """Run the function on every item; as `LocalExecutor.run`."""
        ...


@dataclass(frozen=True)
class LocalExecutor:
    """Processes of this machine; this one does what they leave.

    Attributes:
        processes: beside this one, at most; fewer where they cannot be started.
        start: whether new ones are started, or only those taken that wait for work.
        here: whether this process works, too.
        limit: seconds that an item may take in another process.
    """

    processes: int
    start: bool = True
    here: bool = True
    limit: float = math.inf

    def run(
        self,
        function: Callable[[A], B],
        items: Sequence[A],
        done: Callable[[int, B], None],
        lost: Callable[[int, LostError], None] | None = None,
    ) -> None:
        """Run the function on every item; the first ones are begun first.

        Args:
            done: is told each item's number and result when it is there, one at a time, from any
                thread.
            lost: is told what has no result; without it the item is done here.

        Raises: the first exception that the function or `done` raised.
        """
        _Job(self, function, items, done, lost).run(self._workers(len(items)))

    def _workers(self, items: int) -> list[Worker]:
        found: list[Worker] = []
        while len(found) < min(self.processes, items):
            worker = _idle.take() or (start_worker() if self.start else None)
            if worker is None:
                break
            found.append(worker)
        return found


def start_worker() -> Worker | None:
    """A new process; None where this interpreter cannot start another."""
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    with contextlib.suppress(OSError):
        return Worker()
    return None


class _Job:
    """Items, taken by this thread and by one thread for each worker process."""

    def __init__(
        self,
        executor: LocalExecutor,
        function: Callable[[A], B],
        items: Sequence[A],
        done: Callable[[int, B], None],
        lost: Callable[[int, LostError], None] | None,
    ) -> None:
        self.executor, self.items, self.lost = executor, items, lost
        self.function, self.done = cast(Callable[[Any], Any], function), done
        self.left = deque(range(len(items)))
        self.lock = threading.Lock()
        self.error: BaseException | None = None

    def run(self, workers: list[Worker]) -> None:
        """Do everything; on an interrupt or error the workers are ended."""
        threads = [
            threading.Thread(target=self._drive, args=(workers, k), daemon=True)
            for k in range(len(workers))
        ]
        try:
            for thread in threads:
                thread.start()
            if self.executor.here:
                self._work_here()
            for thread in threads:
                thread.join()
            self._work_here()  # what a worker that died left behind
            if self.error is not None:
                raise self.error
        except BaseException:
            self.left.clear()
            for worker in workers:
                worker.end()
            raise
        for worker in workers:
            _idle.give(worker)

    def _take(self) -> int | None:
        try:
            return self.left.popleft()
        except IndexError:
            return None

    def _finish(self, number: int, result: Any) -> None:
        with self.lock:
            self.done(number, result)

    def _work_here(self) -> None:
        while self.error is None and (number := self._take()) is not None:
            self._finish(number, self.function(self.items[number]))

    def _drive(self, workers: list[Worker], k: int) -> None:
        """Feed one worker until nothing is left, or it is lost and no other can be started."""
        while self.error is None and (number := self._take()) is not None:
            try:
                result = workers[k].call(self.function, self.items[number], self.executor.limit)
                self._finish(number, result)
            except LostError as error:
                workers[k].end()
                if self.lost is None:
                    self.left.append(number)
                    return
                with self.lock:
                    self.lost(number, error)
                another = start_worker()
                if another is None:
                    return
                workers[k] = another
            except BaseException as error:  # noqa: BLE001 - raised where the work was asked for
                self.error = error
                return
