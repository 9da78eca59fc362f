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


def extract(problem: Problem, method: Method, cycles: Cycles, seconds: float) -> Extracted:
    """Choose.

    Args:
        cycles: with "in-ilp" cycles are forbidden by the solver, else filtered beforehand.
        seconds: for everything; the greedy choice is made in any case.
    """
    begun = time.perf_counter()
    problem = contracted(problem)
    tree = greedy_tree(problem)
    if method == "tree":
        return _done(problem, tree, None, False, begun)
    dag = greedy_dag(problem)
    best = min((dag, tree), key=problem.cost)
    if method == "dag":
        return _done(problem, best, None, False, begun)
    problem = problem if cycles == "in-ilp" else without_cycles(problem, best)
    problem = reduced(problem)
    best = min((greedy_dag(problem), greedy_tree(problem)), key=problem.cost)
    left = seconds - (time.perf_counter() - begun)
    best = LocalSearch(problem, dict(best)).run(time.perf_counter() + left / 4)
    left = max(seconds - (time.perf_counter() - begun), 0.0)
    found = solve(problem, best, left, ordering=cycles == "in-ilp")
    return _done(problem, found.choice, found.gap, found.optimal, begun)


def _done(
    problem: Problem, choice: Choice, gap: float | None, optimal: bool, begun: float
) -> Extracted:
    cost, seconds = problem.cost(choice), time.perf_counter() - begun
    return Extracted(problem, choice, cost, gap, optimal, problem.size(), seconds)
