"""Run searches one after the other; keep from each what is faster than the best program so far."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...dialects.deadline import TimeIsUpError, until
from ...dialects.floats import Floats
from ...dialects.program import Program, provenance, where
from ...dialects.types import Array
from ...lowering.targets import Target
from ...passes.cost.costs import Costs
from ...passes.margins import ACCEPT, MEASURE
from ...passes.rules.rule import Rule
from ...passes.search_result import Limits, SearchResult
from ..commands.inputs import draw_inputs
from ..peers.timing import Run, interleave, median
from ..targets.cpu import compile_cpu
from ..targets.cpu_options import CpuOptions
from ..targets.levels import level_of, priced
from ..targets.session import Session
from .refusals import claimed_ratio, contractions, kinds_of, refusal, simpler, total
from .strategies import Strategy

# Why a search did not begin.
OUT_OF_TIME = "the time was spent"


@dataclass(frozen=True)
class ComparisonRequest:
    """How programs are to be compared, and how much of the budget is left for it.

    Attributes:
        unmeasured: why they are not measured; None where they are.
        end: when the budget is spent, by `time.perf_counter`.
        rules: the user's, which searches take beside those that ship.
    """

    target: Target
    costs: Costs
    seed: int
    options: CpuOptions
    end: float
    unmeasured: str | None = None
    rules: tuple[Rule, ...] = ()

    def limits(self, seconds: float) -> Limits:
        """Those of a search of so many seconds."""
        compiled = f"{self.options.threads} threads, {self.options.key}"
        floats = self.options.floats
        return Limits(seconds, seed=self.seed, floats=floats, compiled=compiled, rules=self.rules)

    @property
    def left(self) -> float:
        """Seconds left of the budget."""
        return max(self.end - time.perf_counter(), 0.0)


@dataclass
class Searched:
    """What the searches gave together; `program` is the given one where none gained.

    Attributes:
        seconds: what each search took, its measurements included.
    """

    program: Program
    rewrites: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    rejected: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # likewise
    searches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # likewise
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def entries(self) -> dict[str, Any]:
        """What a report says of the searches, and of how many the result was refused."""
        refused = sum("refused" in search for search in self.searches)
        return {"searches": self.searches, "refused": refused}

    @property
    def stop_reason(self) -> str:
        """Why the first search that did not finish stopped, "finished" where all did.

        "interrupted" where Ctrl-C ended one: no other began.
        """
        reasons = [search["stop_reason"] for search in self.searches]
        if "interrupted" in reasons:
            return "interrupted"
        return next((r for r in reasons if r != "finished"), "finished")


def run_searches(
    program: Program, strategies: Sequence[Strategy], request: ComparisonRequest
) -> Searched:
    """Give each strategy its share of the time and the best program so far.

    None begins after one that was interrupted.
    """
    found = Searched(program)
    end = time.perf_counter() + request.left * MEASURE.searching
    for number, strategy in enumerate(strategies):
        if strategy.level == "graph" and level_of(found.program) != "graph":
            reason = f"the program is at the {level_of(found.program)} level already"
            found.rejected.append({"rule": strategy.name, "place": "main", "reason": reason})
            continue
        if not request.options.floats.allows(strategy.floats):
            reason = request.options.floats.why_not(strategy.floats)
            found.rejected.append({"rule": strategy.name, "place": "main", "reason": reason})
            continue
        started = time.perf_counter()
        if number and started >= end:
            entry = {"rule": strategy.name, "place": "main", "reason": OUT_OF_TIME}
            found.rejected.append(entry)
            continue
        parts = [s.share for s in strategies[number:]]
        share = max(end - started, 0.0) * parts[0] / sum(parts)
        measure = partial(measure_programs, request) if request.unmeasured is None else None
        limits = request.limits(share)
        try:
            with until(request.end):
                result = strategy.search(found.program, request.costs, limits, measure)
            # A search may use all of its share; what it found is still priced, in half of the rest.
            with until((end + request.end) / 2):
                _keep(found, strategy, result, request)
        except (KeyboardInterrupt, TimeIsUpError) as error:
            stop = "time" if isinstance(error, TimeIsUpError) else "interrupted"
            if not found.searches or found.searches[-1]["strategy"] != strategy.name:
                found.searches.append(_entry(strategy, SearchResult(program, stop), 0))
            found.searches[-1] |= {"stop_reason": stop, "reason": _UNMEASURED[stop]}
        found.seconds[strategy.name] = time.perf_counter() - started
        if found.stop_reason == "interrupted":
            break
    return found


# Why what a search found was not measured against what there was.
_UNMEASURED = {"time": "the time was spent before it was measured", "interrupted": "interrupted"}


def _entry(strategy: Strategy, result: SearchResult, candidates: int) -> dict[str, Any]:
    """What a report says of a search, as long as nothing of it is kept."""
    return {
        "strategy": strategy.name,
        "stop_reason": result.stop_reason,
        "looked_at": result.looked_at,
        "candidates": candidates,
        "kept": False,
        "reason": "it found nothing better",
    }


def _keep(
    found: Searched, strategy: Strategy, result: SearchResult, request: ComparisonRequest
) -> None:
    """Take the fastest of what a search returned, if it is faster than what there was.

    What an interrupted search prefers is taken as it is where nothing was kept before: whether it
    is faster, the comparison with the input shows.

    Raises:
        TimeIsUpError: before all of them were measured.
    """
    candidates = _candidates(found.program, result)
    entry = _entry(strategy, result, len(candidates))
    found.searches.append(entry)
    found.rejected += [vars(rejected) for rejected in result.rejected]
    if not candidates:
        return
    if result.stop_reason == "interrupted":
        entry["reason"] = _UNMEASURED["interrupted"]
        if not any(search["kept"] for search in found.searches):
            entry["kept"] = True
            _take(found, strategy, candidates[0], result)
        return
    kind = "modelled" if request.unmeasured is not None else "measured"
    graph_measured = strategy.level == "graph" and kind == "measured"
    if graph_measured and (reason := _why_unmeasured(found.program, candidates[0], request.costs)):
        entry["reason"] = reason
        return
    seconds = _seconds((found.program, *candidates), request)
    best = first_of_the_fastest(seconds, ACCEPT.alike_programs if kind == "measured" else 1.0)
    ratio = seconds[best] / seconds[0] if seconds[0] else 1.0
    entry["reason"] = f"its best program was {kind} to take {ratio:.3f} of the time"
    entry["kept"] = ratio < _accepted(found.program, candidates[best - 1], kind, request.costs)
    if entry["kept"]:
        _take(found, strategy, candidates[best - 1], result)
        return
    costs, refused = request.costs, candidates[best - 1]
    claimed = claimed_ratio(found.program, refused, result, costs)
    if claimed < ACCEPT.modelled_program:
        entry["refused"] = refusal(found.program, refused, claimed, ratio, kind, costs)
        entry["reason"] = f"its best program was {entry['refused']['why']}"


def _accepted(before: Program, after: Program, kind: str, costs: Costs) -> float:
    """The ratio of seconds below which a program counts as faster."""
    if kind == "modelled":
        return ACCEPT.modelled_program
    is_simpler = simpler(kinds_of(after, costs), kinds_of(before, costs))
    return ACCEPT.simpler_program if is_simpler else ACCEPT.program


def _take(found: Searched, strategy: Strategy, chosen: Program, result: SearchResult) -> None:
    labels = dict.fromkeys(_rules_of(chosen), strategy.floats)
    labels |= {a.rule: a.floats for a in result.applied}
    first = chosen is result.program
    found.rewrites += (
        [a.entry() for a in result.applied] if first else _of_ops(chosen, found.program, labels)
    )
    found.program = chosen


def first_of_the_fastest(seconds: Sequence[float], noise: float) -> int:
    """Of candidates that are as fast the first: the search lists the better one earlier.

    Args:
        seconds: of what there was, then of each candidate.
        noise: how many times as long as the fastest counts as fast.
    """
    least = min(seconds[1:]) * noise
    return next(k for k in range(1, len(seconds)) if seconds[k] <= least)


def _candidates(before: Program, result: SearchResult) -> list[Program]:
    """The programs of a search that differ from what there was and from one another."""
    found = [before]
    for program in (result.program, *result.alternatives):
        if not any(program.module.is_structurally_equivalent(o.module) for o in found):
            found.append(program)
    return found[1 : MEASURE.programs + 1]


def _why_unmeasured(before: Program, after: Program, costs: Costs) -> str | None:
    """Why a graph rewrite is not measured: its kernels are modelled to take as long.

    Fewer products are measured in any case: what one wide product gains no model of a CPU says.
    """
    first, second = (kinds_of(program, costs) for program in (before, after))
    ratio = total(second) / total(first) if total(first) else 1.0
    if ratio <= MEASURE.graph_rewrite:
        return None
    if ratio <= 1.0 and contractions(second) < contractions(first):
        return None
    return f"its best program is modelled to take {ratio:.4f} of the time"


def _rules_of(program: Program) -> list[str]:
    return [rule for op in program.main.body.block.ops for rule in provenance(op)]


def _of_ops(
    program: Program, before: Program, floats: Mapping[str, Floats]
) -> list[dict[str, Any]]:
    """The rewrites that a program's ops remember and that no op of the one before does."""
    known = {(where(op), rule) for op in before.main.body.block.ops for rule in provenance(op)}
    new: dict[tuple[str, str], None] = {}
    for op in program.main.body.block.ops:
        new |= {(where(op), rule): None for rule in provenance(op)}
    return [
        {"rule": rule, "place": place, "proof": "checked", "delta": 0.0, **floats[rule].entry()}
        for place, rule in new
        if (place, rule) not in known
    ]


def _seconds(programs: Sequence[Program], request: ComparisonRequest) -> list[float]:
    """What each takes: measured where the target runs here, else modelled at the kernel level."""
    if request.unmeasured is None:
        return measure_programs(request, programs, min(MEASURE.program_seconds, request.left / 4))
    return [request.costs.program(priced(p, request.target.name)).seconds for p in programs]


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
