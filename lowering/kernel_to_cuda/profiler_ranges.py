"""Named ranges of host code that profilers show (NVTX), where the package nvtx is installed."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from .device_runtime import Work

DOMAIN = "isoform"


def profiler_range(name: str) -> AbstractContextManager[Any]:
    """A range of that name; nothing if nvtx is missing."""
    nvtx = _nvtx()
    return nullcontext() if nvtx is None else nvtx.annotate(name, domain=DOMAIN)


def ranged(name: str, work: Work) -> Work:
    """Work inside of a range."""

    def done() -> None:
        with profiler_range(name):
            work()

    return done


@cache
def _nvtx() -> Any:
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None
