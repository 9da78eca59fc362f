"""How many processors this process may use."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

TOPOLOGY = Path("/sys/devices/system/cpu")


def processors() -> int:
    """Count the processors that this process may run on."""
    return len(_allowed())


def physical_cores(topology: Path = TOPOLOGY) -> int:
    """Count the cores that this process may run on; processors of one core share its arithmetic."""
    return len({_core(number, topology) for number in _allowed()})


def _allowed() -> Collection[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return range(os.cpu_count() or 1)


def _core(number: int, topology: Path) -> tuple[str, ...]:
    """Package and core of a processor; a name of its own where the system does not tell."""
    folder = topology / f"cpu{number}" / "topology"
    try:
        return tuple(
            (folder / name).read_text().strip() for name in ("physical_package_id", "core_id")
        )
    except OSError:
        return (str(number),)
