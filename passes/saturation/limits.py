"""What saturation may spend, and the watch that every loop of it asks."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from ..search_result import StopReason

SHARE = 0.5
"""Of time and memory, the most that saturation takes: extraction has the rest."""


@dataclass(frozen=True)
class Caps:
    """What saturation may spend.

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
    """Says when a limit is reached. Each loop whose length no limit bounds asks it at every turn.

    Attributes:
        begun: what the clock read when the search began.
    """

    caps: Caps
    begun: float
    _memory: float = field(default_factory=lambda: resident_mebibytes())

    def check(self) -> None:
        """Look now. Raises Stop."""
        self.foretold(0.0, 0.0)

    def room(self, nodes: int) -> None:
        """Ask how many e-nodes there may be. Raises Stop where these are too many."""
        if nodes > self.caps.nodes:
            raise LimitReached("nodes")

    def foretold(self, seconds: float, mebibytes: float) -> None:
        """Ask before a step that nothing can stop. Raises Stop where it would not fit."""
        if time.perf_counter() + seconds > self.begun + self.caps.seconds * SHARE:
            raise LimitReached("time")
        if self.gained() + mebibytes > self.caps.mebibytes * SHARE:
            raise LimitReached("memory")

    def gained(self) -> float:
        """Mebibytes held more than at the start."""
        return resident_mebibytes() - self._memory


def resident_mebibytes() -> float:
    """Memory this process holds now; where the system does not say, the most it ever held."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
