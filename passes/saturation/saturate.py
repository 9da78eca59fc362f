"""The loop: match, apply, stop within limits.

egglog cannot be stopped inside a step, so it only matches, and no more than a bound says fits
(bounds.py): a rule whose patterns may have more matches than a round may take is set aside for that
round, the others go on. Instances are applied here one by one under the watch, so an iteration that
would blow up stops in its middle with a sound e-graph (nothing has to be rolled back: every applied
instance is whole).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..rules.rule import Rule, Var, subterms
from ..search_result import StopReason
from .apply import InstanceApplier
from .bounds import Bounds
from .cycles import Reach
from .egraph import EGraph
from .engine import Engine
from .limits import LimitReached, Watch
from .match import Cycles, EGraphMatcher, Instance
from .patterns import EGraphPattern, LeftPatterns

_MOST_REASONS = 200
_SECONDS_A_MATCH = 1e-5
_MEBIBYTES_A_MATCH = 1e-3


@dataclass
class Saturation:
    """What the loop did.

    Attributes:
        instances: those that changed something, in order; `applied` counts them by rule.
        refused: of each rule whose right side could not be built or would close a cycle, the
            reason first met and how often.
        aside: rules left out of a round, with the largest bound of their matches.
    """

    stop_reason: StopReason
    iterations: int
    seconds: float
    nodes: list[int]
    applied: dict[str, int]
    refused: dict[tuple[str, str], int]
    aside: dict[str, float]
    instances: list[Instance]


@dataclass
class SaturationRun:
    """One run over one graph."""

    graph: EGraph
    engine: Engine
    builder: InstanceApplier
    watch: Watch
    cycles: Cycles
    applied: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    aside: dict[str, float] = field(default_factory=dict[str, float])
    instances: list[Instance] = field(default_factory=list[Instance])
    sizes: list[int] = field(default_factory=list[int])
    _begun: int = 0
    _program: int = 0

    def __post_init__(self) -> None:
        self.sizes = [len(self.graph.nodes)]
        self._program = len(self.graph.types)
        tick, made = self.watch.tick, lambda: self.builder.made
        self._matcher = EGraphMatcher(
            self.engine, self.graph, self.cycles, tick, made, self.builder.fits
        )

    def run(self, multi: int) -> Saturation:
        """Saturate; may be called again to go on.

        Args:
            multi: rules with several outputs take part in so many rounds, the first.
        """
        begun, sizes = time.perf_counter(), self.sizes
        reason: StopReason = "steps"
        try:
            reason = self._rounds(sizes, multi)
        except LimitReached as stop:
            reason = stop.reason
        except KeyboardInterrupt:
            reason = "interrupted"
        self.graph.congruent(())  # what the last instances joined, without egglog
        sizes[self._begun :] = [len(self.graph.nodes)]
        return Saturation(
            reason,
            self._begun,
            time.perf_counter() - begun,
            sizes,
            self.applied,
            self.refused,
            self.aside,
            self.instances,
        )

    def _rounds(self, sizes: list[int], multi: int) -> StopReason:
        """Rounds until nothing changes, once more after a fold; their sizes are added.

        Raises:
            Stop: a limit is reached.
        """
        folded = False
        for number in range(self.watch.caps.iterations):
            self.watch.check()
            self.watch.room(0)
            taking = [
                left for left in self.engine.lefts if len(left.rule.left) == 1 or number < multi
            ]
            kept, patterns = self._bounded(taking)
            self.engine.insert(self.graph)
            rows = self.engine.match(self.graph, patterns)
            before = self._size()
            self._begun += 1
            self._apply(self._matcher.instances(kept, rows))
            sizes.append(len(self.graph.nodes))
            if before == self._size() and multi and not folded:
                folded = True
                self._fold()
            if before == self._size():
                return "finished" if len(kept) == len(taking) else "steps"
        return "steps"

    def _fold(self) -> None:
        """Merge whole groups that came about since the first round of merges. Raises Stop."""
        kept, patterns = self._bounded([x for x in self.engine.lefts if len(x.rule.left) > 1])
        rows = self.engine.match(self.graph, patterns)
        self._apply(self._matcher.folds(kept, rows, self._program))

    def _bounded(
        self, taking: Iterable[LeftPatterns]
    ) -> tuple[list[LeftPatterns], list[EGraphPattern]]:
        """The rules that this round has room for, by the bounds of their matches, least first.

        Raises:
            Stop: matching them may take more than is left.
        """
        bounds = Bounds(self.graph, self.builder.prefix)
        most = {p: bounds.of(subterms((p.term,))) for left in taking for p in left.patterns}
        total, fitting = 0.0, dict[EGraphPattern, None]()
        for pattern in sorted(most, key=lambda p: most[p]):
            total += most[pattern]
            if total > self.watch.caps.matches:
                total -= most[pattern]
                break
            fitting[pattern] = None
        kept = list[LeftPatterns]()
        for left in taking:
            if all(p in fitting for p in left.patterns):
                kept.append(left)
            else:
                bound = max(most[p] for p in left.patterns)
                self.aside[left.rule.name] = max(bound, self.aside.get(left.rule.name, 0.0))
        self.watch.foretold(total * _SECONDS_A_MATCH, total * _MEBIBYTES_A_MATCH)
        return kept, list(fitting)

    def _apply(self, instances: Iterator[Instance]) -> None:
        """Apply instances one by one. Raises Stop."""
        reach = None if self.cycles in ("guarded", "in-ilp") else Reach(self.graph)
        adds = {left.rule.name: _size(left.rule) for left in self.engine.lefts}
        for instance in instances:
            self.builder.made = {}
            if reach is not None and self.cycles == "vanilla":
                reach = Reach(self.graph)
            if reach is not None and reach.closes(instance.roots, instance.tensors.values()):
                self._refuse(instance, "it would close a cycle")
                continue
            self.watch.room(adds[instance.rule.name])
            before = self._size()
            reason = self.builder.apply(instance)
            if reason:
                self._refuse(instance, reason)
            elif before != self._size():
                name = instance.rule.name
                self.applied[name] = self.applied.get(name, 0) + 1
                self.instances.append(instance)

    def _size(self) -> tuple[int, int]:
        return len(self.graph.nodes), len(self.graph.unions)

    def _refuse(self, instance: Instance, reason: str) -> None:
        key = (instance.rule.name, reason)
        if key in self.refused or len(self.refused) < _MOST_REASONS:
            self.refused[key] = self.refused.get(key, 0) + 1


def _size(rule: Rule) -> int:
    """The most e-nodes an instance adds."""
    return sum(not isinstance(term, Var) for term in subterms(rule.right))
