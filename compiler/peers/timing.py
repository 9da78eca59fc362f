"""Time programs in turn, and describe the machine.

The machine is shared and its clock speed varies: compare medians and their ratios.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ...dialects.deadline import check_time
from ...dialects.types import Array

Run = Callable[[], object]
WARM_UP = 2


def interleave(
    runs: Mapping[str, Run],
    seconds: float,
    least: int = 5,
    most: int = 2000,
    settle: float = 0.0,
    warm_up: int = WARM_UP,
) -> dict[str, list[float]]:
    """Time each run in turn until `seconds` are spent, at least `least` rounds; in seconds.

    Args:
        settle: seconds of untimed runs before each timed one. The previous runtime's threads
            may still spin on a core that this one needs, and its data fill the caches.
        warm_up: untimed runs of each at the beginning.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    for name in order * warm_up:
        check_time()
        runs[name]()
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < least or (time.perf_counter() < end and rounds < most):
        for name in order[rounds % len(order) :] + order[: rounds % len(order)]:
            check_time()
            _settle(runs[name], settle)
            started = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - started)
        rounds += 1
    return times


def _settle(run: Run, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        run()


def median(times: Sequence[float]) -> float:
    """The median."""
    return statistics.median(times)


def quartiles(times: Sequence[float]) -> tuple[float, float]:
    """The 25th and the 75th percentile."""
    low, high = np.percentile(np.asarray(times), [25, 75])
    return float(low), float(high)


def machine() -> dict[str, Any]:
    """What a reader of timings must know about the machine; the load is that of the last minute."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "load_average": load,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def cpu_name() -> str:
    """The processor's marketing name, where the system has it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def package_version(name: str) -> str:
    """Version of an installed package, "?" where its metadata is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "?"


def difference(ours: Sequence[Array], theirs: Sequence[Array]) -> float:
    """Greatest difference of any output, relative to the other runtime's greatest magnitude.

    Infinite where shapes differ, or where only one has a NaN or infinity at some position.
    """
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        wide_a, wide_b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
        if wide_a.shape != wide_b.shape:
            return float("inf")
        same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
        apart = np.abs(np.subtract(wide_a, wide_b, out=np.zeros_like(wide_a), where=~same))
        if not np.isfinite(apart).all():
            return float("inf")
        scale = float(np.abs(wide_b[np.isfinite(wide_b)]).max(initial=0.0)) or 1.0
        worst = max(worst, float(apart.max(initial=0.0)) / scale)
    return worst
