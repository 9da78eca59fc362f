"""The searches in turn; where the model decides, also those below the graph level alone.

What a search of the graph level keeps may lead the others away from something better: two products
made one by padding, say, of which derivation makes less than of the two. Measured programs have one
order only: a second one would take as long as the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.program import Program
from ...passes.margins import ACCEPT
from ..targets.levels import priced
from .records import ComparisonRequest, Searched
from .search_stage import run_searches
from .strategies import Strategy


def search_in_best_order(
    program: Program, strategies: Sequence[Strategy], request: ComparisonRequest
) -> Searched:
    """What the searches find in turn, or what those below the graph level find by themselves."""
    found = run_searches(program, strategies, request)
    names = {s.name for s in strategies if s.level == "graph"}
    led = any(search["kept"] and search["strategy"] in names for search in found.searches)
    below = [s for s in strategies if s.level != "graph"]
    stopped = found.stop_reason == "interrupted" or request.left <= 0.0
    if request.unmeasured is None or stopped or not (led and below):
        return found
    other = run_searches(program, below, request)
    first, second = (_seconds(one.program, request) for one in (found, other))
    names_run = dict.fromkeys((*found.seconds, *other.seconds))
    seconds = {n: found.seconds.get(n, 0.0) + other.seconds.get(n, 0.0) for n in names_run}
    if second >= first * ACCEPT.modelled_program:
        found.seconds = seconds
        return found
    reason = f"without it the others reach a program that takes {second / first:.3f} of the time"
    graph = [
        s | {"kept": False, "reason": reason} for s in found.searches if s["strategy"] in names
    ]
    rejected = [entry for entry in found.rejected if entry["rule"] in names]
    return Searched(
        other.program, other.rewrites, rejected + other.rejected, graph + other.searches, seconds
    )


def _seconds(program: Program, request: ComparisonRequest) -> float:
    return request.costs.program(priced(program, request.target.name)).seconds
