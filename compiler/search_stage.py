"""Run searches one after the other, and keep of each what is faster than what there was."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..dialects.program import Program, provenance, where
from ..lowering.targets import Target
from ..passes.cost import Costs
from ..passes.search_result import Limits, SearchResult
from .cpu import CpuOptions
from .levels import level_of, lower_to
from .strategies import Strategy

# A candidate must win by this much: less is noise, and the program there is is the safer one.
MARGIN = 0.97
# Programs of one search that are measured: each is compiled whole.
MOST_MEASURED = 4
# Seconds of interleaved runs for one comparison, at most.
MOST_SECONDS = 10.0
LEAST_ROUNDS = 7
# Part of the budget that searches may take; the rest is for measuring the result.
SEARCHING = 0.8


@dataclass(frozen=True)
class Question:
    """How programs are to be compared.

    Attributes:
        unmeasured: why they are not measured; None where they are.
    """

    target: Target
    costs: Costs
    seed: int
    options: CpuOptions
    seconds: float
    unmeasured: str | None = None


@dataclass
class Searched:
    """What the searches gave together; `program` is the given one where none gained."""

    program: Program
    rewrites: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    rejected: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    searches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def stop_reason(self) -> str:
        """Why the first search that did not finish stopped; "finished" where all did."""
        reasons = [search["stop_reason"] for search in self.searches]
        return next((r for r in reasons if r != "finished"), "finished")


def run_searches(program: Program, strategies: Sequence[Strategy], question: Question) -> Searched:
    """Give each strategy its share of the time and the best program so far."""
    found = Searched(program)
    end = time.perf_counter() + question.seconds * SEARCHING
    for number, strategy in enumerate(strategies):
        if strategy.level == "graph" and level_of(found.program) != "graph":
            reason = f"the program is at the {level_of(found.program)} level already"
            found.rejected.append({"rule": strategy.name, "place": "main", "reason": reason})
            continue
        parts = [s.share for s in strategies[number:]]
        left = max(end - time.perf_counter(), 0.0)
        limits = Limits(left * parts[0] / sum(parts), seed=question.seed)
        measure = partial(measure_programs, question) if question.unmeasured is None else None
        result = strategy.search(found.program, question.costs, limits, measure)
        _keep(found, strategy.name, result, question)
    return found


def _keep(found: Searched, name: str, result: SearchResult, question: Question) -> None:
    """Take the fastest of what a search returned, if it is faster than what there was."""
    candidates: list[Program] = []
    for program in (result.program, *result.alternatives):
        others = (found.program, *candidates)
        if not any(program.module.is_structurally_equivalent(o.module) for o in others):
            candidates.append(program)
    candidates = candidates[:MOST_MEASURED]
    seconds = _seconds((found.program, *candidates), question) if candidates else [0.0]
    best = min(range(len(seconds)), key=seconds.__getitem__)
    kept = best > 0 and seconds[best] < seconds[0] * MARGIN
    found.rejected += [vars(entry) for entry in result.rejected]
    if kept:
        chosen = candidates[best - 1]
        first = chosen is result.program
        found.rewrites += (
            [vars(a) for a in result.applied] if first else _of_ops(chosen, found.program)
        )
        found.program = chosen
    elif candidates:
        kind = "modelled" if question.unmeasured is not None else "measured"
        ratio = min(seconds[1:]) / seconds[0] if seconds[0] else 1.0
        reason = f"its best program was {kind} to take {ratio:.3f} of the time"
        found.rejected.append({"rule": name, "place": "main", "reason": reason})
    found.searches.append(
        {
            "strategy": name,
            "stop_reason": result.stop_reason,
            "candidates": len(candidates),
            "kept": kept,
        }
    )


def _of_ops(program: Program, before: Program) -> list[dict[str, Any]]:
    """The rewrites that a program's ops remember and that no op of the one before does."""
    known = {(where(op), rule) for op in before.main.body.block.ops for rule in provenance(op)}
    new: dict[tuple[str, str], None] = {}
    for op in program.main.body.block.ops:
        new |= {(where(op), rule): None for rule in provenance(op)}
    return [
        {"rule": rule, "place": place, "proof": "checked", "delta": 0.0}
        for place, rule in new
        if (place, rule) not in known
    ]


def _seconds(programs: Sequence[Program], question: Question) -> list[float]:
    """What each takes: measured where the target runs here, else modelled at the kernel level."""
    if question.unmeasured is None:
        return measure_programs(question, programs, min(MOST_SECONDS, question.seconds / 4))
    return [question.costs.program(lower_to(p, "kernel")).seconds for p in programs]


def measure_programs(
    question: Question, programs: Sequence[Program], seconds: float
) -> list[float]:
    """Median seconds of a run of each, run in turn; `LEAST_ROUNDS` times at least."""
    from .bench import interleave, median
    from .cpu import compile_cpu
    from .inputs import draw_inputs
    from .session import Session

    sessions = [Session(p, compile_cpu(p, question.options)) for p in programs]
    feeds = draw_inputs(programs[0], question.seed)
    runs = {str(k): partial(s.run, None, feeds) for k, s in enumerate(sessions)}
    times = interleave(runs, seconds, least=LEAST_ROUNDS, most=200)
    for session in sessions:
        session.close()
    return [median(times[str(k)]) for k in range(len(programs))]
