"""Run searches one after the other; each starts from what was accepted before (acceptance.py)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ...dialects.deadline import TimeIsUpError, until
from ...dialects.errors import UserError, say
from ...dialects.program import Program
from ...passes.margins import MEASURE
from ...passes.search_result import SearchResult
from ...passes.work_clock import now
from ..targets.levels import level_of
from . import measuring
from .acceptance import UNMEASURED, accept, search_entry
from .records import ComparisonRequest, Searched
from .strategies import Strategy, is_added
from .user_passes import compared

# Why a search did not begin.
OUT_OF_TIME = "the time was spent"


def run_searches(
    program: Program, strategies: Sequence[Strategy], request: ComparisonRequest
) -> Searched:
    """Give each strategy its share of the time and the best program so far.

    None begins after one that was interrupted.
    """
    found = Searched(program)
    end = now() + request.left * MEASURE.searching
    for number, strategy in enumerate(strategies):
        if strategy.level == "graph" and level_of(found.program) != "graph":
            reason = f"the program is at the {level_of(found.program)} level already"
            found.rejected.append({"rule": strategy.name, "place": "main", "reason": reason})
            continue
        if not request.options.floats.allows(strategy.floats):
            reason = request.options.floats.why_not(strategy.floats)
            found.rejected.append({"rule": strategy.name, "place": "main", "reason": reason})
            continue
        started, begun = now(), time.perf_counter()
        if number and started >= end:
            entry = {"rule": strategy.name, "place": "main", "reason": OUT_OF_TIME}
            found.rejected.append(entry)
            continue
        parts = [s.share for s in strategies[number:]]
        share = max(end - started, 0.0) * parts[0] / sum(parts)
        measure = (
            partial(measuring.measure_programs, request) if request.unmeasured is None else None
        )
        limits = request.limits(share)
        say(f"search {strategy.name}: up to {share:.1f} s")
        try:
            with until(request.wall(request.end)):
                result = strategy.search(found.program, request.costs, limits, measure)
                if is_added(strategy):
                    result = _proved(strategy, found.program, result, limits.seconds)
            # A search may use all of its share, and more on a busy machine. What it found is still
            # priced: measured in half of the rest, or by the model, which takes little.
            modelled = request.unmeasured is not None
            with until(math.inf if modelled else (end + request.end) / 2):
                accept(found, strategy, result, request)
        except (KeyboardInterrupt, TimeIsUpError) as error:
            stop = "time" if isinstance(error, TimeIsUpError) else "interrupted"
            if not found.searches or found.searches[-1]["strategy"] != strategy.name:
                found.searches.append(search_entry(strategy, SearchResult(program, stop), 0))
            found.searches[-1] |= {"stop_reason": stop, "reason": UNMEASURED[stop]}
        found.seconds[strategy.name] = time.perf_counter() - begun
        kept = any(e["strategy"] == strategy.name and e["kept"] for e in found.searches)
        say(f"search {strategy.name}: {_outcome(found, strategy.name)}", best=kept)
        if found.stop_reason == "interrupted":
            break
    return found


def _proved(
    strategy: Strategy, given: Program, result: SearchResult, seconds: float
) -> SearchResult:
    """The result of a plug-in's search, where it computes the same.

    Raises:
        UserError: it computes something else, or nobody knows whether it does.
    """
    verdict = compared(given, result.program, seconds)
    if verdict is None:
        return replace(result, alternatives=[])
    raise UserError(
        f"strategy '{strategy.name}': {verdict.reason or 'it computes something else'}",
        expected="a program that is proved to compute the same",
        found=verdict.kind,
    )


def _outcome(found: Searched, name: str) -> str:
    """What the last search came to, in a line."""
    entry = next((e for e in reversed(found.searches) if e["strategy"] == name), None)
    if entry is None:
        return "done"
    return f"{'kept' if entry['kept'] else 'nothing kept'}: {entry['reason']}"
