"""Compile many modules at once, with progress on a terminal.

llvmlite compiles one module at a time in a process, so several processes compile in parallel.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Generator, Sequence

from ....dialects.errors import is_heard, say
from ....dialects.executor import LocalExecutor
from ..isa import Isa
from .cores import processors
from .jit import compile_object

# With fewer modules than this, starting another process takes longer than compiling them.
LEAST_MODULES = 6
MODULES_PER_WORKER = 3
MOST_WORKERS = 15

Keep = Callable[[int, bytes], None]


def compile_objects(texts: Sequence[str], isa: Isa, keep: Keep) -> list[bytes]:
    """Compile modules, in order; in this process alone if there are few or none can be started.

    Args:
        keep: called with each object and its number when it is done, from several threads.

    Raises: RuntimeError with LLVM's message if a text does not parse or verify.
    """
    helpers = min(processors() - 1, len(texts) // MODULES_PER_WORKER, MOST_WORKERS)
    executor = LocalExecutor(helpers, start=len(texts) >= LEAST_MODULES)
    # Long texts first, so that no process still has one when the others are done.
    order = sorted(range(len(texts)), key=lambda k: -len(texts[k]))
    found: dict[int, bytes] = {}
    with _progress(len(texts)) as advance:

        def done(number: int, data: bytes) -> None:
            found[order[number]] = data
            keep(order[number], data)
            advance()

        executor.run(compile_pair, [(texts[k], isa) for k in order], done)
    return [found[k] for k in range(len(texts))]


def compile_pair(module: tuple[str, Isa]) -> bytes:
    """Compile a module for an instruction set."""
    return compile_object(*module)


@contextlib.contextmanager
def _progress(count: int) -> Generator[Callable[[], None]]:
    """A progress bar on stderr, if that is a terminal and there is something to wait for.

    Where a listener shows what is being done, it is told in place of a bar.
    """
    if is_heard():
        numbers = itertools.count(1)
        yield lambda: say(f"compile: {next(numbers)} of {count} kernels")
        return
    if count < LEAST_MODULES or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling kernels", total=count)
        yield lambda: bar.advance(task)
