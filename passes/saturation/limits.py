"""Limits of saturation, and the watch that every loop asks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ..search_result import StopReason
from ..work_clock import now

SHARE = 0.5
"""Of time and memory, the most that saturation takes: extraction has the rest."""


@dataclass(frozen=True)
class Caps:
    """Limits of saturation.

    Attributes:
        nodes: e-nodes; iterations: rounds over all rules; k_multi: rounds in which rules with
            several outputs take part; matches: of one round, bounded beforehand (bounds.py).

    Units:
        seconds: wall-clock, and mebibytes: resident memory gained, of the whole search; half of
            each at most is saturation's, the rest extraction's.
    """

    nodes: int = 50_000
    iterations: int = 15
    k_multi: int = 1
    seconds: float = 60.0
    mebibytes: float = 2048.0
    matches: int = 200_000


class LimitReached(Exception):
    """A limit is reached: saturation ends with the e-graph as it is, which is sound."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason: StopReason = reason


@dataclass
class Watch:
    """Raises where a limit is reached. Every loop without a bound of its own asks it each time.

    Attributes:
        begun: what `now` read when the search began.
    """

    caps: Caps
    begun: float
    _memory: float = field(default_factory=lambda: resident_mebibytes())

    def check(self) -> None:
        """Check seconds and memory. Raises LimitReached."""
        self.foretold(0.0, 0.0)

    def room(self, nodes: int) -> None:
        """Check a number of e-nodes. Raises LimitReached where there are too many."""
        if nodes > self.caps.nodes:
            raise LimitReached("nodes")

    def foretold(self, seconds: float, mebibytes: float) -> None:
        """Check an estimate before a step that cannot be stopped. Raises LimitReached."""
        if now() + seconds > self.begun + self.caps.seconds * SHARE:
            raise LimitReached("time")
        if self.gained() + mebibytes > self.caps.mebibytes * SHARE:
            raise LimitReached("memory")

    def gained(self) -> float:
        """Mebibytes held in addition to those at the start."""
        return resident_mebibytes() - self._memory

    def spare(self) -> float:
        """Mebibytes left of the whole search's."""
        return max(self.caps.mebibytes - self.gained(), 0.0)


def resident_mebibytes() -> float:
    """Resident memory of this process; its peak where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
