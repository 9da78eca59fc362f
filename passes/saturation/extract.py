"""Extraction end to end: greedy first, then better, always with a program in hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..margins import ACCEPT
from ..work_clock import now as clock
from .cycles import Cycles
from .egraph import ENode
from .greedy import LocalSearch, greedy_dag, greedy_tree
from .ilp import CyclicComponent, cyclic_components, solve
from .problem import Choice, Problem, contracted, moved, reduced, without_cycles

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
    optimal: bool  # whether that is proved
    candidates: int
    seconds: float


def extract(
    problem: Problem,
    method: Method,
    cycles: Cycles,
    until: float,
    mebibytes: float = 2048.0,
    known: Iterable[ENode] = (),
) -> Extracted:
    """Choose.

    Cycles are filtered for the local search. The integer program has what that cut, and a row for
    each cycle; where these are too many, programs without the cut come first.

    Args:
        cycles: with "in-ilp" there is the second alone.
        until: when the clock stops it, at the best choice so far; the greedy one by tree cost is
            made in any case.
        mebibytes: for the integer program.
        known: e-nodes of an earlier choice, to begin with.
    """
    begun = clock()
    problem = contracted(problem)
    if method == "tree":
        return _done(problem, greedy_tree(problem), None, False, begun)
    if method == "dag":
        return _done(problem, _greedy(problem, until), None, False, begun)
    now = clock()
    if until - now < 2 * (now - begun):  # what follows takes longer than the contraction did
        return _done(problem, _greedy(problem, until), 1.0, False, begun)
    whole = reduced(problem, (now + until) / 2)
    best = _greedy(whole, until)
    taken = list(known)
    if taken and clock() < until:
        best = min((best, _known(whole, taken)), key=whole.cost)
    if clock() > until:
        return _done(whole, best, 1.0, False, begun)
    if cycles == "in-ilp":
        best = _searched(whole, best, until, False)
        return _solved(whole, best, until, cyclic_components(whole), mebibytes, begun)
    filtered = without_cycles(whole, best)
    best = _searched(filtered, moved(best, whole, filtered), until, True)
    if filtered.size() == whole.size():
        return _solved(filtered, best, until, (), mebibytes, begun)
    loops, best = cyclic_components(whole), {**greedy_tree(whole), **moved(best, filtered, whole)}
    if any(loop.cycles is None for loop in loops):
        best = _around(whole, best, until, mebibytes)
    return _solved(whole, best, until, loops, mebibytes, begun)


def extract_quickly(problem: Problem, until: float) -> Extracted:
    """Choose without an integer program: greedy, then local search."""
    begun = clock()
    problem = contracted(problem)
    best = _searched(problem, _greedy(problem, until), until, False)
    return _done(problem, best, None, False, begun)


def _around(whole: Problem, best: Choice, until: float, mebibytes: float) -> Choice:
    """Filter cycles around the best choice so far and solve, again and again while that gains."""
    while True:
        before, now = whole.cost(best), clock()
        filtered = without_cycles(whole, best)
        start = _searched(filtered, moved(best, whole, filtered), until, True)
        first = now + (until - now) / 2
        found = _solved(filtered, start, first, (), mebibytes, now)
        best = {**best, **moved(found.choice, filtered, whole)}
        if found.cost > before * ACCEPT.extraction:
            return best


def _known(problem: Problem, known: Iterable[ENode]) -> Choice:
    """The greedy choice that takes known e-nodes only, where a class has such."""
    ids = set(map(id, known))
    others = {
        c: [k for k, node in enumerate(nodes) if id(node) not in ids]
        for c, nodes in problem.nodes.items()
        if any(id(node) in ids for node in nodes)
    }
    limited = problem.without(others)
    return {**greedy_tree(problem), **moved(greedy_tree(limited), limited, problem)}


def _searched(problem: Problem, best: Choice, until: float, acyclic: bool) -> Choice:
    """What local search makes of a choice in a quarter of the time that is left."""
    now = clock()
    return LocalSearch(problem, dict(best), acyclic).run(now + (until - now) / 4)


def _solved(
    problem: Problem,
    best: Choice,
    until: float,
    loops: Sequence[CyclicComponent],
    mebibytes: float,
    begun: float,
) -> Extracted:
    """What the integer program makes of a choice, where there is time for one."""
    left = until - clock()
    if left < _LEAST_SECONDS:
        return _done(problem, best, 1.0, False, begun)
    found = solve(problem, best, left, loops, mebibytes)
    return _done(problem, found.choice, found.gap, found.optimal, begun)


def _greedy(problem: Problem, until: float) -> Choice:
    """The better of both greedy choices; that by tree cost where time does not reach for both."""
    tree = greedy_tree(problem)
    dag = greedy_dag(problem, until)
    return tree if dag is None else min((dag, tree), key=problem.cost)


def _done(
    problem: Problem, choice: Choice, gap: float | None, optimal: bool, begun: float
) -> Extracted:
    cost, seconds = problem.cost(choice), clock() - begun
    return Extracted(problem, choice, cost, gap, optimal, problem.size(), seconds)
