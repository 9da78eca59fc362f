"""Compile many modules at once, in processes beside this one, with progress on a terminal."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import BinaryIO, cast

from .compile_worker import isa_text, receive, send
from .cores import processors
from .isa import Isa
from .jit import compile_object

# Fewer modules are compiled before another process is up.
LEAST_MODULES = 6
MODULES_PER_WORKER = 3
MOST_WORKERS = 15
_MODULE = f"{__package__}.compile_worker"

Keep = Callable[[int, bytes], None]


class Worker:
    """A process that compiles modules for this one."""

    def __init__(self, isa: Isa) -> None:
        """Start it where this package is found as it is here. Raises OSError where it cannot."""
        paths = os.pathsep.join(path for path in sys.path if path)
        self.isa = isa
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, isa_text(isa)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
        )
        self.owner = os.getpid()

    def compile(self, text: str) -> bytes | None:
        """Compile a module; None if it does not compile or the process has died."""
        source, target = self.process.stdout, self.process.stdin
        assert source is not None
        assert target is not None
        try:
            send(cast(BinaryIO, target), text.encode())
            return receive(cast(BinaryIO, source)) or None
        except (OSError, ValueError):
            return None

    @property
    def alive(self) -> bool:
        """Whether it can take another module."""
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


class _Idle:
    """Workers that wait for more inside `kept_workers`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.workers: list[Worker] = []

    def take(self, isa: Isa) -> Worker | None:
        with self.lock:
            for worker in self.workers:
                if worker.isa == isa and worker.alive:
                    self.workers.remove(worker)
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
    """Keep worker processes inside the block, for several calls of `compile_objects`."""
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


def compile_objects(texts: Sequence[str], isa: Isa, keep: Keep) -> list[bytes]:
    """Compile modules, in order; in this process alone where there are few or none can be started.

    Args:
        keep: is told each object (and its number) when it is there, from several threads.

    Raises: RuntimeError with LLVM's message if a text does not parse or verify.
    """
    with _progress(len(texts)) as advance:

        def finished(number: int, data: bytes) -> None:
            keep(number, data)
            advance()

        job = _Job(texts, finished)
        job.run(isa, _workers(isa, len(texts)))
    return job.results()


def _workers(isa: Isa, modules: int) -> list[Worker]:
    """Processes that help this one: those at hand, and new ones for many modules.

    None where this interpreter cannot start another.
    """
    wanted = min(processors() - 1, modules // MODULES_PER_WORKER, MOST_WORKERS)
    startable = modules >= LEAST_MODULES and bool(sys.executable)
    startable = startable and not getattr(sys, "frozen", False)
    found: list[Worker] = []
    while len(found) < wanted:
        worker = _idle.take(isa)
        if worker is None and startable:
            with contextlib.suppress(OSError):
                worker = Worker(isa)
        if worker is None:
            break
        found.append(worker)
    return found


class _Job:
    """Modules to compile, taken by this thread and by one thread for each worker process."""

    def __init__(self, texts: Sequence[str], keep: Keep) -> None:
        self.texts = texts
        self.keep = keep
        # Long texts first: no process is left with one when the others are done.
        self.left = deque(sorted(range(len(texts)), key=lambda k: -len(texts[k])))
        self.objects: list[bytes | None] = [None] * len(texts)

    def run(self, isa: Isa, workers: Sequence[Worker]) -> None:
        """Compile everything; on an interrupt or error the workers are ended."""
        threads = [
            threading.Thread(target=self._drive, args=(worker,), daemon=True) for worker in workers
        ]
        try:
            for thread in threads:
                thread.start()
            self._compile_here(isa)
            for thread in threads:
                thread.join()
            self.left.extend(k for k, data in enumerate(self.objects) if data is None)
            self._compile_here(isa)  # what a worker that died, or could not, left behind
        except BaseException:
            for worker in workers:
                worker.end()
            raise
        for worker in workers:
            _idle.give(worker)

    def results(self) -> list[bytes]:
        """Give the objects in the order of the texts."""
        return [data for data in self.objects if data is not None]

    def _take(self) -> int | None:
        try:
            return self.left.popleft()
        except IndexError:
            return None

    def _finish(self, number: int, data: bytes) -> None:
        self.objects[number] = data
        self.keep(number, data)

    def _compile_here(self, isa: Isa) -> None:
        while (number := self._take()) is not None:
            self._finish(number, compile_object(self.texts[number], isa))

    def _drive(self, worker: Worker) -> None:
        """Feed one worker until nothing is left or it fails; then this process does the rest."""
        while (number := self._take()) is not None:
            data = worker.compile(self.texts[number])
            if data is None:
                worker.end()
                return
            self._finish(number, data)


@contextlib.contextmanager
def _progress(count: int) -> Generator[Callable[[], None]]:
    """A bar on stderr where that is a terminal and there is something to wait for."""
    if count < LEAST_MODULES or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling kernels", total=count)
        yield lambda: bar.advance(task)
