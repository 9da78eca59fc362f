"""A moment by which work in a block must be done: what takes long looks at it as it goes."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("end", default=math.inf)


class TimeIsUpError(Exception):
    """The moment has come before the work was done; what there is of it is to be thrown away."""


@contextmanager
def until(end: float) -> Generator[None]:
    """Let `check_time` raise in the block once `time.perf_counter` says `end`, or an outer one."""
    token = _END.set(min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


@contextmanager
def apart() -> Generator[None]:
    """Let the work in the block take the time that it takes, and put the moment off by as much.

    Raises: TimeIsUpError where it has come.
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
    """Go on. Raises TimeIsUpError where the moment has come."""
    if time.perf_counter() >= _END.get():
        raise TimeIsUpError
