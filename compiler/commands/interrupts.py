"""Ctrl-C: the first ends searching and keeps what was found; the second stops the process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from ...dialects.files import remove_unfinished

STATUS = 130


class Interrupts:
    """Counts interrupts while a command runs.

    Attributes:
        count: how many there were.
        told: the message printed at the first.
    """

    def __init__(self, told: str) -> None:
        self.count, self.told = 0, told
        self._writing = False

    @contextmanager
    def writing(self) -> Generator[None]:
        """Only count the first interrupt in the block, while something short is written."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt at the first; end the process at the second."""
        self.count += 1
        if self.count > 1:
            remove_unfinished()
            os.write(2, b"isoform: stopped\n")
            os._exit(STATUS)
        os.write(2, f"isoform: interrupted: {self.told}\n".encode())
        if not self._writing:
            raise KeyboardInterrupt


@contextmanager
def interrupts(told: str) -> Generator[Interrupts]:
    """Handle Ctrl-C in the block; only the main thread of a process can."""
    made = Interrupts(told)
    usual = threading.current_thread() is threading.main_thread()
    if not usual or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield made
        return
    signal.signal(signal.SIGINT, made)
    try:
        yield made
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
