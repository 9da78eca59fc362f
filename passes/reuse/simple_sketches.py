"""Reuse for sketches with one number to choose, and for operators of several nests.

    cross-thread reduction    a block computes one position; its threads share the sum: try threads
    two-level tile            the space is one loop, cut into blocks and threads: try blocks
    unrolled constant tensor  likewise; loops over a constant operand are written out

Features that are fixed are not tried, and shapes that follow from features are not searched. The
unroll limit is the known program's. Source: the technical report of ETO, on section 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .features import Features, block_counts, divisors, ranges
from .hierarchical import Task, Trials, hierarchical_search
from .machine import Machine
from .nest import CROSS_THREAD, OperatorNest
from .tile_schedule import TileSchedule


@dataclass(frozen=True)
class FusedSchedule:
    """A schedule of a sketch whose loops are one loop, cut in two.

    Attributes:
        outer: blocks; of a cross-thread reduction the terms of a thread.
        inner: threads of a block.
    """

    sketch: str
    outer: int
    inner: int
    unroll: int = 0

    def features(self, nest: OperatorNest) -> Features:
        """Blocks and threads; none of these sketches keeps operands near."""
        blocks = nest.points if self.sketch == CROSS_THREAD else self.outer
        return Features(blocks, blocks * self.inner, 1)


def fused_candidates(
    a: OperatorNest, b: OperatorNest, known: FusedSchedule, machine: Machine
) -> Iterator[FusedSchedule]:
    """The programs of a that are worth measuring, given one of b."""
    blocks, threads, _ = ranges(a, b, known.features(b))
    if known.sketch == CROSS_THREAD:
        whole = a.terms
        fit = tuple(n for n in divisors(whole) if n <= machine.most_threads)
        inner = threads.per(a.points).pick(fit)
    else:
        whole = a.points
        inner = tuple(whole // count for count in block_counts(a, b, blocks))
    for size in inner:
        if size <= machine.most_threads:
            yield FusedSchedule(known.sketch, whole // size, size, known.unroll)


AnySchedule = TileSchedule | FusedSchedule
Measure = Callable[[AnySchedule], float]


def search(
    a: OperatorNest, b: OperatorNest, known: AnySchedule, machine: Machine, measure: Measure
) -> Trials[AnySchedule]:
    """Measure what a may take from b's program, by the rules of that program's sketch."""
    if isinstance(known, TileSchedule):
        found = hierarchical_search(Task(a, b, known, machine), measure)
        seconds: dict[AnySchedule, float] = {**found.seconds}
        return Trials(measure, seconds)
    trials = Trials(measure)
    trials.best(fused_candidates(a, b, known, machine))
    return trials


@dataclass(frozen=True)
class OperatorPart:
    """One nest of an operator of several, as the four of a Winograd convolution."""

    name: str
    nest: OperatorNest


Parts = Mapping[str, AnySchedule]


def search_parts(
    a: Sequence[OperatorPart],
    b: Sequence[OperatorPart],
    known: Parts,
    defaults: Parts,
    machine: Machine,
    measure: Callable[[Parts], float],
) -> tuple[Parts, int]:
    """Search the parts one by one, the largest first, the rest at their best or their defaults.

    Both operators have the same parts. Returns the best schedules and the number of programs
    measured.
    """
    others = {part.name: part for part in b}
    best, count = dict(defaults), 0
    for part in sorted(a, key=lambda one: -one.nest.size):

        def whole(schedule: AnySchedule, name: str = part.name) -> float:
            return measure({**best, name: schedule})

        found = search(part.nest, others[part.name].nest, known[part.name], machine, whole)
        count += len(found.seconds)
        chosen = found.best(found.seconds)
        if chosen is not None and found.seconds[chosen] < math.inf:
            best[part.name] = chosen
    return best, count


def fused(nest: OperatorNest, sketch: str, inner: int, unroll: int = 0) -> FusedSchedule:
    """A schedule with so many threads a block, which divide the loop."""
    whole = nest.terms if sketch == CROSS_THREAD else nest.points
    return FusedSchedule(sketch, whole // inner, inner, unroll)
