"""Deadlines: long work in a block checks the time and stops when it is up."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("end", default=math.inf)


class TimeIsUpError(Exception):
    """The deadline passed before the work was done; partial results must be discarded."""


@contextmanager
def until(end: float) -> Generator[None]:
    """Let `check_time` raise in the block after `time.perf_counter` reaches `end`, or an outer."""
    token = _END.set(min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


@contextmanager
def paused() -> Generator[None]:
    """Do not count the time of the work in the block: the deadline moves by as much.

    Raises: TimeIsUpError where it has passed.
    """
    check_time()
    end, started = _END.get(), time.perf_counter()
    token = _END.set(math.inf)
    try:
        yield
    finally:
        _END.reset(token)
        _END.set(end + time.perf_counter() - started)


def check_time() -> None:
    """Return. Raises TimeIsUpError where the deadline has passed."""
    if time.perf_counter() >= _END.get():
        raise TimeIsUpError
