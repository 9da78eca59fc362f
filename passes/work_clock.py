"""The clock that limits of searches are read on: counted work, where `optimize` only models.

`optimize` divides its budget among searches. On a clock on the wall a busy machine would end them
elsewhere, and equal runs would give unlike results. So within `counted` this clock stands still but
for what searches charge: about the CPU seconds that such work takes on one core, at fixed rates.
The budget that the user gave stays wall-clock time: once it is spent, all limits have passed.

Outside of `counted` this is the clock on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# Later than any limit: what the clock is put forward by when the user's budget is spent.
_SPENT = 1e9


@dataclass
class _Counted:
    """Seconds charged so far, and when the user's budget is spent, by `time.perf_counter`."""

    stop: float
    seconds: float = 0.0


_CLOCK: ContextVar[_Counted | None] = ContextVar("work", default=None)


@contextmanager
def counted(stop: float) -> Generator[None]:
    """Count work in the block, until `time.perf_counter` reaches `stop`."""
    token = _CLOCK.set(_Counted(stop))
    try:
        yield
    finally:
        _CLOCK.reset(token)


def now(otherwise: Callable[[], float] | None = None) -> float:
    """Seconds: of counted work; where it is not, of another clock, by default that on the wall."""
    clock = _CLOCK.get()
    if clock is None:
        return time.perf_counter() if otherwise is None else otherwise()
    return clock.seconds + (_SPENT if time.perf_counter() >= clock.stop else 0.0)


def charge(seconds: float) -> None:
    """Count work that takes about so many CPU seconds."""
    clock = _CLOCK.get()
    if clock is not None:
        clock.seconds += seconds


def is_counted() -> bool:
    """Whether work is counted."""
    return _CLOCK.get() is not None


def wall_seconds(seconds: float) -> float:
    """Wall-clock seconds for work that has so many: all that the user left, where it is counted."""
    clock = _CLOCK.get()
    return seconds if clock is None else max(clock.stop - time.perf_counter(), 0.0)


__all__ = ["charge", "counted", "is_counted", "now", "wall_seconds"]
