"""Long work on a terminal: one block for `optimize` (stage, what it looks at, the best so far, time
left), one bar for work on many things; a line now and then elsewhere.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...dialects.errors import heard_by, is_quiet, is_verbose, one_line

if TYPE_CHECKING:
    from rich.table import Table

# Twice a second is often enough to see that work goes on, and disturbs no measurement.
_A_SECOND = 2
# Seconds between two lines of `progress`, where there is no terminal.
_LINES = 10.0


class CalmBlock:
    """What was said last, as a block that rich draws again and again.

    Args:
        title: what is worked on.
        budget: seconds that the work may take.
    """

    def __init__(self, title: str, budget: float) -> None:
        self.title, self.budget = one_line(title), budget
        self.started = time.perf_counter()
        self.stage, self.looks_at, self.best = "begin", "", ""

    def __call__(self, text: str, best: bool) -> None:
        """Hear what is being done, as `STAGE: what`."""
        stage, _, rest = one_line(text).partition(": ")
        self.stage, self.looks_at = stage, rest
        if rest.startswith("up to "):  # the time that a search may take
            self.stage, self.looks_at = f"{stage}, {rest}", ""
        if best:
            self.best = f"{rest.removeprefix('kept: ')} ({stage.removeprefix('search ')})"

    def __rich__(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        spent = time.perf_counter() - self.started
        left = max(self.budget - spent, 0.0)
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="ellipsis", no_wrap=True, ratio=1)  # names keep their width
        table.add_row("optimize", Text(self.title, "bold"))
        bar = ProgressBar(self.budget, min(spent, self.budget), width=30)
        table.add_row("time", bar if left else Text("used up: the result is compared"))
        table.add_row("", Text(f"{left:.0f} s left of {self.budget:.0f} s"))
        table.add_row("stage", Text(self.stage))
        table.add_row("looks at", Text(self.looks_at))
        table.add_row("best so far", Text(self.best or "the program as it is"))
        return table


@contextmanager
def calm_block(title: str, budget: float) -> Generator[None]:
    """Show the work in the block, if stderr is a terminal and neither -q nor -v was given."""
    if is_quiet() or is_verbose() or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    block = CalmBlock(title, budget)
    console = Console(stderr=True)
    with (
        heard_by(block),
        Live(block, console=console, refresh_per_second=_A_SECOND, transient=True),
    ):
        yield


@contextmanager
def progress(what: str, total: int) -> Generator[Callable[[str], None]]:
    """Show how many of `total` are done, each told by its name; with -q nothing."""
    if is_quiet():
        yield lambda name: None
    elif sys.stderr.isatty():
        with _bar(what, total) as told:
            yield told
    else:
        with _lines(what, total) as told:
            yield told


@contextmanager
def _bar(what: str, total: int) -> Generator[Callable[[str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    last = TextColumn("{task.fields[last]}", markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), last, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, last="")
        yield lambda name: bar.update(task, advance=1, last=one_line(name))


@contextmanager
def _lines(what: str, total: int) -> Generator[Callable[[str], None]]:
    """A line every ten seconds, also while the first is not done."""
    done: list[str] = []
    ended, started = threading.Event(), time.perf_counter()

    def tell() -> None:
        while not ended.wait(_LINES):
            seconds = time.perf_counter() - started
            last = f", last {one_line(done[-1])}" if done else ""
            text = f"{what}: {len(done)} of {total} in {seconds:.0f} s{last}"
            print(text, file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield done.append
    finally:
        ended.set()
        thread.join()
