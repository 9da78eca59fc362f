"""A clock that no other program on the machine can hurry."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def clock_of_calls(monkeypatch: pytest.MonkeyPatch, *others: str) -> Iterator[None]:
    """Let `perf_counter`, and other clocks, read how many calls Python has made and left.

    Units: millionths.
    """
    events = 0

    def count(*_: object) -> None:
        nonlocal events
        events += 1

    with monkeypatch.context() as patched:
        for name in ("perf_counter", *others):
            patched.setattr(time, name, lambda: events * 1e-6)
        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)
