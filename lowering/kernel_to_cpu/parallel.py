"""Compile many modules at once, in processes beside this one, with progress on a terminal."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence

from .compile_worker import isa_text, receive, send
from .isa import Isa
from .jit import compile_object

# Fewer modules are compiled before another process is up.
LEAST_MODULES = 6
MODULES_PER_WORKER = 3
MOST_WORKERS = 15
_MODULE = f"{__package__}.compile_worker"


Keep = Callable[[int, bytes], None]


def compile_objects(texts: Sequence[str], isa: Isa, keep: Keep) -> list[bytes]:
    """Compile modules, in order; in this process alone where there are few or none can be started.

    Args:
        keep: is told each object (and its number) when it is there, from several threads.

    Raises: RuntimeError with LLVM's message if a text does not parse or verify.
    """
    workers = 0 if len(texts) < LEAST_MODULES else _worker_count(len(texts))
    with _progress(len(texts)) as advance:

        def finished(number: int, data: bytes) -> None:
            keep(number, data)
            advance()

        job = _Job(texts, isa, finished)
        job.run(workers)
    return job.results()


def _worker_count(modules: int) -> int:
    """How many processes help this one; none where this interpreter cannot start another."""
    if getattr(sys, "frozen", False) or not sys.executable:
        return 0
    return min(_cores() - 1, modules // MODULES_PER_WORKER, MOST_WORKERS)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Job:
    """Modules to compile, taken by this thread and by one thread for each worker process."""

    def __init__(self, texts: Sequence[str], isa: Isa, keep: Keep) -> None:
        self.texts = texts
        self.isa = isa
        self.keep = keep
        # Long texts first: no process is left with one when the others are done.
        self.left = deque(sorted(range(len(texts)), key=lambda k: -len(texts[k])))
        self.objects: list[bytes | None] = [None] * len(texts)
        self.processes: list[subprocess.Popen[bytes]] = []

    def run(self, workers: int) -> None:
        """Compile everything; on an interrupt or error the workers are ended first."""
        threads: list[threading.Thread] = []
        try:
            for _ in range(workers):
                process = self._start_worker()
                if process is not None:
                    self.processes.append(process)
                    threads.append(threading.Thread(target=self._drive, args=(process,)))
                    threads[-1].daemon = True
                    threads[-1].start()
            self._compile_here()
            for thread in threads:
                thread.join()
            self.left.extend(k for k, data in enumerate(self.objects) if data is None)
            self._compile_here()  # what a worker that died, or could not, left behind
        finally:
            for process in self.processes:
                process.kill()
                process.wait()
                for stream in (process.stdin, process.stdout):
                    with contextlib.suppress(OSError):
                        assert stream is not None
                        stream.close()

    def results(self) -> list[bytes]:
        """Give the objects in the order of the texts."""
        return [data for data in self.objects if data is not None]

    def _start_worker(self) -> subprocess.Popen[bytes] | None:
        """Start a process that finds this package where this one does; None if that fails."""
        paths = os.pathsep.join(path for path in sys.path if path)
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, isa_text(self.isa)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
            )
        except OSError:
            return None

    def _take(self) -> int | None:
        try:
            return self.left.popleft()
        except IndexError:
            return None

    def _finish(self, number: int, data: bytes) -> None:
        self.objects[number] = data
        self.keep(number, data)

    def _compile_here(self) -> None:
        while (number := self._take()) is not None:
            self._finish(number, compile_object(self.texts[number], self.isa))

    def _drive(self, process: subprocess.Popen[bytes]) -> None:
        """Feed one worker until nothing is left or it fails; then this process does the rest."""
        source, target = process.stdout, process.stdin
        assert source is not None and target is not None
        while (number := self._take()) is not None:
            try:
                send(target, self.texts[number].encode())  # pyright: ignore[reportArgumentType]
                data = receive(source)  # pyright: ignore[reportArgumentType]
            except (OSError, ValueError):
                return
            if not data:
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
