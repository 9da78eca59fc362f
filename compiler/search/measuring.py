"""Measure programs against one another: seconds of a run, as ratios to the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...dialects.program import Program
from ...dialects.types import Array
from ...passes.margins import MEASURE
from ..commands.inputs import draw_inputs
from ..peers.timing import Run, interleave, median
from ..targets.cpu import compile_cpu
from ..targets.session import Session
from .records import ComparisonRequest


def measure_programs(
    request: ComparisonRequest, programs: Sequence[Program], seconds: float
) -> list[float]:
    """Median seconds of a run of each program. Promising ones run in turn with the first.

    At most two sessions are open at once, because each may hold gigabytes.
    """
    given, *others = programs
    feeds = draw_inputs(given, request.seed)
    with _opened(given, request) as session:
        run = partial(session.run, None, feeds)
        if not others:
            return [_median_seconds(run, seconds)]
        share = seconds / (len(others) + 1)
        baseline = _median_seconds(run, share * MEASURE.glance, least=1)
        first = _Baseline(run, baseline, _arena(session), feeds, request)
        ratios = [1.0]
        for other in others:
            ratios.append(first.ratio_of(other, share, min(ratios)))
    return [first.seconds * ratio for ratio in ratios]


def _opened(program: Program, request: ComparisonRequest) -> Session:
    return Session(program, compile_cpu(program, request.options))


def _arena(session: Session) -> int:
    return getattr(session.runner, "arena_bytes", 0)


def _median_seconds(run: Run, seconds: float, least: int = MEASURE.least_rounds) -> float:
    """Median seconds of a run that is measured on its own."""
    return median(interleave({"": run}, seconds, least, MEASURE.most_rounds)[""])


@dataclass(frozen=True)
class _Baseline:
    """The program that others are compared with: its run, the seconds of a run, its arena."""

    run: Run
    seconds: float
    arena_bytes: int
    feeds: Mapping[str, Array]
    request: ComparisonRequest

    def ratio_of(self, other: Program, seconds: float, best: float) -> float:
        """Seconds of another program over the baseline's; infinite if it needs too much memory.

        Its session is closed afterwards.

        Args:
            best: the smallest ratio so far.
        """
        with _opened(other, self.request) as session:
            if _arena(session) > max(MEASURE.room, MEASURE.more_room * self.arena_bytes):
                return math.inf
            run = partial(session.run, None, self.feeds)
            glance = _median_seconds(run, seconds * MEASURE.glance, least=1) / self.seconds
            if glance > MEASURE.hopeless * best:
                return glance
            long = self.seconds * (1.0 + glance) >= MEASURE.long
            rounds = MEASURE.long_rounds if long else MEASURE.least_rounds
            runs = {"first": self.run, "second": run}
            times = interleave(runs, seconds, rounds, MEASURE.most_rounds)
        return median(times["second"]) / median(times["first"])
