"""The searches in turn; where the model decides, also some of them alone, and the best is taken.

What one search keeps may lead the others away from something better: two products made one by
padding, say, of which derivation makes less than of the two. So what each graph search finds from
the given program is compared with what they find in turn, and those below the graph level begin
from the best and from the given program. Measured programs have one order only: a second one would
take as long as the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dialects.program import Program
from ...passes.margins import ACCEPT
from ...passes.work_clock import now
from ..targets.levels import priced
from .records import ComparisonRequest, Searched
from .search_stage import run_searches
from .strategies import Strategy

# Of the time that is left, what the graph searches take together before others begin.
_GRAPH = 0.6
# Of theirs, what they take in turn: the rest is for those that begin from the given program, which
# find most of what they find early, where a busy machine leaves the others no time.
_IN_TURN = 0.7


def search_in_best_order(
    program: Program, strategies: Sequence[Strategy], request: ComparisonRequest
) -> Searched:
    """What the searches find in turn, or the best of what some of them find by themselves."""
    graph = [s for s in strategies if s.level == "graph"]
    below = [s for s in strategies if s.level != "graph"]
    if request.unmeasured is not None and len(graph) > 1:
        first = _best_of_the_graph(program, graph, request)
        if first.stop_reason == "interrupted":
            return first
        found = first.followed_by(run_searches(first.program, below, request))
    else:
        found = run_searches(program, strategies, request)
    names = {s.name for s in graph}
    led = any(search["kept"] and search["strategy"] in names for search in found.searches)
    stopped = found.stop_reason == "interrupted" or request.left <= 0.0
    if request.unmeasured is None or stopped or not (led and below):
        return found
    return _better(found, run_searches(program, below, request), names, request)


def _best_of_the_graph(
    program: Program, graph: Sequence[Strategy], request: ComparisonRequest
) -> Searched:
    """What the graph searches find in turn, or one of them alone that would not begin there."""
    begun = now()
    part = replace(request, end=begun + (request.end - begun) * _GRAPH)
    in_turn = replace(part, end=begun + (part.end - begun) * _IN_TURN)
    found = run_searches(program, graph, in_turn)
    for number, strategy in enumerate(graph[1:], 1):
        before = {s.name for s in graph[:number]}
        led = any(s["kept"] and s["strategy"] in before for s in found.searches)
        same = not led and strategy.name in found.seconds  # it began from the given program
        if same or found.stop_reason == "interrupted" or part.left <= 0.0:
            break
        names = {s.name for s in graph} - {strategy.name}
        found = _better(found, run_searches(program, [strategy], part), names, request)
    return found


def _better(
    found: Searched, other: Searched, names: set[str], request: ComparisonRequest
) -> Searched:
    """What was found, or what was found without the searches of these names if it takes less."""
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
