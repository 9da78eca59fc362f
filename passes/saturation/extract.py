"""Extraction end to end: greedy first, then better, always with a program in hand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .greedy import LocalSearch, greedy_dag, greedy_tree
from .ilp import solve
from .match import Cycles
from .problem import Choice, Problem, contracted, reduced, without_cycles

Method: TypeAlias = Literal["tree", "dag", "ilp"]
_LEAST_SECONDS = 0.05
"""Less is not worth an integer program's set-up."""

METHODS: tuple[Method, ...] = ("tree", "dag", "ilp")


@dataclass(frozen=True)
class Extracted:
    """A choice on a problem.

    Attributes:
        cost: recomputed from the choice.
        gap: relative distance to the proven lower bound; None where none was sought.
        candidates: e-nodes the method chose from, after reductions.
    """

    problem: Problem
    choice: Choice
    cost: float
    gap: float | None
    optimal: bool
    candidates: int
    seconds: float


def extract(
    problem: Problem, method: Method, cycles: Cycles, until: float, mebibytes: float = 2048.0
) -> Extracted:
    """Choose.

    Args:
        cycles: with "in-ilp" cycles are forbidden by the solver, else filtered beforehand.
        until: when the clock stops it, at the best choice so far; the greedy one by tree cost is
            made in any case.
        mebibytes: for the integer program.
    """
    begun = time.perf_counter()
    problem = contracted(problem)
    if method == "tree":
        return _done(problem, greedy_tree(problem), None, False, begun)
    best = _greedy(problem, until)
    if method == "dag" or time.perf_counter() > until:
        return _done(problem, best, None, False, begun)
    problem = problem if cycles == "in-ilp" else without_cycles(problem, best)
    problem = reduced(problem, until)
    best = _greedy(problem, until)
    now = time.perf_counter()
    local = LocalSearch(problem, dict(best), acyclic=cycles != "in-ilp")
    best = local.run(now + (until - now) / 4)
    left = until - time.perf_counter()
    if left < _LEAST_SECONDS:
        return _done(problem, best, 1.0, False, begun)
    found = solve(problem, best, left, cycles == "in-ilp", mebibytes)
    return _done(problem, found.choice, found.gap, found.optimal, begun)


def _greedy(problem: Problem, until: float) -> Choice:
    """The better of both greedy choices; that by tree cost where time does not reach for both."""
    tree = greedy_tree(problem)
    dag = greedy_dag(problem, until)
    return tree if dag is None else min((dag, tree), key=problem.cost)


def _done(
    problem: Problem, choice: Choice, gap: float | None, optimal: bool, begun: float
) -> Extracted:
    cost, seconds = problem.cost(choice), time.perf_counter() - begun
    return Extracted(problem, choice, cost, gap, optimal, problem.size(), seconds)
