"""The loop: match, apply, stop within limits.

egglog cannot be stopped inside a step, so the steps are kept small. It only matches; instances are
applied here one by one under the node, time and memory limits, so an iteration that would blow up
stops in its middle with a sound e-graph (nothing has to be rolled back: every applied instance is
whole). How long the next matching will take is foretold from the last one, and not begun where it
would not fit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..search_result import StopReason
from .apply import Builder
from .cycles import Reach
from .egraph import EGraph
from .engine import Engine
from .match import Cycles, Instance, Matcher

_CHECK_EVERY = 32
_MOST_REASONS = 200
_SHARE = 0.1


@dataclass(frozen=True)
class Caps:
    """What saturation may spend.

    Attributes:
        nodes: e-nodes; iterations: rounds over all rules; k_multi: rounds in which rules with
            several outputs take part.

    Units:
        seconds: wall-clock; mebibytes: resident memory gained since the start.
    """

    nodes: int = 50_000
    iterations: int = 15
    k_multi: int = 1
    seconds: float = 60.0
    mebibytes: float = 2048.0


@dataclass
class Saturation:
    """What the loop did.

    Attributes:
        instances: those applied, in order.
        refused: of each rule whose right side could not be built or would close a cycle, the
            reason first met and how often.
    """

    stop_reason: StopReason
    iterations: int
    seconds: float
    nodes: list[int]
    applied: dict[str, int]
    refused: dict[tuple[str, str], int]
    instances: list[Instance]


@dataclass
class Loop:
    """One run over one graph."""

    graph: EGraph
    engine: Engine
    builder: Builder
    caps: Caps
    cycles: Cycles
    applied: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    instances: list[Instance] = field(default_factory=list[Instance])
    _started: float = field(default_factory=time.perf_counter)
    _memory: float = field(default_factory=lambda: resident_mebibytes())

    def run(self) -> Saturation:
        """Saturate."""
        matcher = Matcher(self.engine, self.graph, self.cycles)
        sizes, reason, done = [len(self.graph.nodes)], None, 0
        step = 0.0
        while reason is None and done < self.caps.iterations:
            reason = self._over() or self._too_long(step, sizes)
            if reason is not None:
                break
            begun = time.perf_counter()
            if not self.engine.insert(self.graph, self._started + self.caps.seconds):
                reason = "time"
                break
            rows = self.engine.match(self.graph)
            step = time.perf_counter() - begun
            before = len(self.graph.nodes), len(self.graph.unions)
            reason = self._apply_all(
                instance
                for left in self.engine.lefts
                if len(left.rule.left) == 1 or done < self.caps.k_multi
                for instance in matcher.instances(left, rows)
            )
            done += 1
            sizes.append(len(self.graph.nodes))
            if reason is None and before == (len(self.graph.nodes), len(self.graph.unions)):
                reason = "finished"
        self._close()
        seconds = time.perf_counter() - self._started
        stop = reason or "steps"
        return Saturation(stop, done, seconds, sizes, self.applied, self.refused, self.instances)

    def _apply_all(self, instances: Iterator[Instance]) -> StopReason | None:
        try:
            return self._apply(instances)
        except KeyboardInterrupt:
            return "interrupted"

    def _apply(self, instances: Iterator[Instance]) -> StopReason | None:
        reach = None if self.cycles in ("guarded", "in-ilp") else Reach(self.graph)
        for count, instance in enumerate(instances):
            if count % _CHECK_EVERY == 0 and (reason := self._over()) is not None:
                return reason
            if reach is not None and self.cycles == "vanilla":
                reach = Reach(self.graph)
            if reach is not None and reach.closes(instance.roots, instance.tensors.values()):
                self._refuse(instance, "it would close a cycle")
                continue
            reason = self.builder.apply(instance)
            if reason:
                self._refuse(instance, reason)
            else:
                name = instance.rule.name
                self.applied[name] = self.applied.get(name, 0) + 1
                self.instances.append(instance)
            if len(self.graph.nodes) >= self.caps.nodes:
                return "nodes"
        return None

    def _refuse(self, instance: Instance, reason: str) -> None:
        key = (instance.rule.name, reason)
        if key in self.refused or len(self.refused) < _MOST_REASONS:
            self.refused[key] = self.refused.get(key, 0) + 1

    def _over(self) -> StopReason | None:
        if len(self.graph.nodes) >= self.caps.nodes:
            return "nodes"
        if time.perf_counter() - self._started > self.caps.seconds:
            return "time"
        if resident_mebibytes() - self._memory > self.caps.mebibytes:
            return "memory"
        return None

    def _too_long(self, step: float, sizes: Sequence[int]) -> StopReason | None:
        """Whether the next matching is foretold not to fit: it grows as the square of the nodes.

        Only what took a share of a limit before is a ground to foretell.
        """
        left = self.caps.seconds - (time.perf_counter() - self._started)
        growth = sizes[-1] / sizes[-2] if len(sizes) > 1 else 1.0
        if step > _SHARE * self.caps.seconds and step * growth**2 > left:
            return "time"
        gained, most = resident_mebibytes() - self._memory, self.caps.mebibytes
        return "memory" if gained > _SHARE * most and gained * growth**2 > most else None

    def _close(self) -> None:
        """Close the graph under congruence without egglog: what the last instances joined."""
        self.graph.congruent(())


def resident_mebibytes() -> float:
    """Memory this process holds now; where the system does not say, the most it ever held."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
