"""Decide what is accepted as faster: of what a search returned, and of the result of all searches.

A program is accepted if its seconds, measured or modelled, are below a part of those before
(`ACCEPT` in passes/margins.py). Otherwise the report says why not (refusals.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dialects.floats import Floats
from ...dialects.program import Program, provenance, where
from ...passes.cost.costs import Costs
from ...passes.margins import ACCEPT, MEASURE
from ...passes.search_result import SearchResult
from ..reports.changes import changes, with_changes
from ..reports.printed_ops import printed_ops
from ..targets.levels import level_of, lower_to, priced
from . import measuring
from .records import Comparison, ComparisonRequest, Searched
from .refusals import claimed_ratio, contractions, kinds_of, refusal, simpler, total
from .strategies import Strategy

# Why what a search found was not measured against what there was.
UNMEASURED = {"time": "the time was spent before it was measured", "interrupted": "interrupted"}


def accept(
    found: Searched, strategy: Strategy, result: SearchResult, request: ComparisonRequest
) -> None:
    """Take the fastest of what a search returned, if it is faster than what there was.

    What an interrupted search prefers is taken as it is where nothing was kept before: whether it
    is faster, the comparison with the input shows.

    Raises:
        TimeIsUpError: before all of them were measured.
    """
    candidates = _candidates(found.program, result)
    entry = search_entry(strategy, result, len(candidates))
    found.searches.append(entry)
    found.rejected += [vars(rejected) for rejected in result.rejected]
    if not candidates:
        return
    if result.stop_reason == "interrupted":
        entry["reason"] = UNMEASURED["interrupted"]
        if not any(search["kept"] for search in found.searches):
            entry["kept"] = True
            _take(found, strategy, candidates[0], result, request.costs)
        return
    kind = "modelled" if request.unmeasured is not None else "measured"
    graph_measured = strategy.level == "graph" and kind == "measured"
    if graph_measured:
        reasons = [_why_unmeasured(found.program, c, request.costs) for c in candidates]
        candidates = [c for c, why in zip(candidates, reasons, strict=True) if why is None]
        if not candidates:
            entry["reason"] = str(reasons[0])
            return
    seconds = program_seconds((found.program, *candidates), request)
    best = first_of_the_fastest(seconds, ACCEPT.alike_programs if kind == "measured" else 1.0)
    ratio = seconds[best] / seconds[0] if seconds[0] else 1.0
    entry["reason"] = f"its best program was {kind} to take {ratio:.3f} of the time"
    entry["kept"] = ratio < _accepted_ratio(
        found.program, candidates[best - 1], kind, request.costs
    )
    if entry["kept"]:
        _take(found, strategy, candidates[best - 1], result, request.costs)
        return
    costs, refused = request.costs, candidates[best - 1]
    claimed = claimed_ratio(found.program, refused, result, costs)
    if claimed < ACCEPT.modelled_program:
        entry["refused"] = refusal(found.program, refused, claimed, ratio, kind, costs)
        entry["reason"] = f"its best program was {entry['refused']['why']}"


def is_refused(comparison: Comparison, changed: bool) -> bool:
    """Whether the input is returned in place of the result: the last decision of `optimize`.

    A slower result is refused, and a changed one that was not compared.
    """
    return comparison.is_slower or (comparison.missed is not None and changed)


def _accepted_ratio(before: Program, after: Program, kind: str, costs: Costs) -> float:
    """The ratio of seconds below which a program counts as faster."""
    if kind == "modelled":
        return ACCEPT.modelled_program
    is_simpler = simpler(kinds_of(after, costs), kinds_of(before, costs))
    return ACCEPT.simpler_program if is_simpler else ACCEPT.program


def _take(
    found: Searched, strategy: Strategy, chosen: Program, result: SearchResult, costs: Costs
) -> None:
    labels = dict.fromkeys(_rules_of(chosen), strategy.floats)
    labels |= {a.rule: a.floats for a in result.applied}
    first = chosen is result.program
    made = [a.entry() for a in result.applied] if first else _of_ops(chosen, found.program, labels)
    made = [{**entry, "search": strategy.name} for entry in made]
    level = level_of(chosen)
    ops = [
        printed_ops(lower_to(p, level, costs.target.name), costs) for p in (found.program, chosen)
    ]
    found.rewrites += with_changes(made, changes(*ops))
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


def program_seconds(programs: Sequence[Program], request: ComparisonRequest) -> list[float]:
    """What each takes: measured where the target runs here, else modelled at the kernel level."""
    if request.unmeasured is None:
        return measuring.measure_programs(
            request, programs, min(MEASURE.program_seconds, request.left / 4)
        )
    return [request.costs.program(priced(p, request.target.name)).seconds for p in programs]


def search_entry(strategy: Strategy, result: SearchResult, candidates: int) -> dict[str, Any]:
    """What a report says of a search, as long as nothing of it is kept."""
    return {
        "strategy": strategy.name,
        "stop_reason": result.stop_reason,
        "looked_at": result.looked_at,
        "curve": [list(point) for point in result.curve],
        "matches": result.matches,
        "candidates": candidates,
        "kept": False,
        "reason": "it found nothing better",
    }
