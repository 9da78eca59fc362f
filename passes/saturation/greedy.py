"""Greedy extraction, by tree cost and by DAG cost, and a local search that sees what they miss.

Both finish classes in the order of their cost (Knuth 1977): an e-node is considered when its
operands are finished, so a choice never has a cycle.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from ..work_clock import charge, now
from .problem import Choice, Problem

_SECONDS_A_CHOICE = 1e-5
_SECONDS_A_MOVE = 2e-5

State = TypeVar("State")


def greedy_tree(problem: Problem) -> Choice:
    """The cheapest e-node of each class, a shared operand counted as often as it is used."""

    def cost(klass: int, position: int, below: list[float]) -> tuple[float, float]:
        total = problem.costs[klass][position] + sum(below)
        return total, total

    chosen = _finish(problem, cost, math.inf)
    assert chosen is not None
    return chosen


def greedy_dag(problem: Problem, until: float = math.inf) -> Choice | None:
    """The cheapest e-node of each class, what its operands share counted once.

    None where the clock read `until` before the end.
    """
    costs = problem.costs

    def cost(
        klass: int, position: int, below: list[dict[int, float]]
    ) -> tuple[float, dict[int, float]]:
        own = costs[klass][position]
        merged = dict(max(below, key=len)) if below else dict[int, float]()
        for part in below:
            merged.update(part)
        if own:
            merged[klass] = own
        return sum(merged.values()), merged

    return _finish(problem, cost, until)


def _finish(
    problem: Problem, cost: Callable[[int, int, list[State]], tuple[float, State]], until: float
) -> Choice | None:
    users = dict[int, list[tuple[int, int]]]()
    waiting = dict[tuple[int, int], int]()
    heap, chosen, states = list[tuple[float, int, int]](), Choice(), dict[int, State]()
    found = dict[tuple[int, int], State]()

    def push(klass: int, position: int) -> None:
        below = [states[c] for c in problem.operands[klass][position]]
        total, found[klass, position] = cost(klass, position, below)
        heapq.heappush(heap, (total, klass, position))

    for klass, choices in problem.operands.items():
        for position, operands in enumerate(choices):
            waiting[klass, position] = len(operands)
            for c in operands:
                users.setdefault(c, []).append((klass, position))
            if not operands:
                push(klass, position)
    while heap:
        _, klass, position = heapq.heappop(heap)
        state = found.pop((klass, position))
        if klass in chosen:
            continue
        charge(_SECONDS_A_CHOICE)
        if now() > until:
            return None
        chosen[klass], states[klass] = position, state
        for user, at in users.get(klass, ()):
            waiting[user, at] -= 1
            if not waiting[user, at] and user not in chosen:
                push(user, at)
    return chosen


@dataclass
class LocalSearch:
    """Improves a choice: all users of a class that is not taken turn to it together.

    That is the move greedy extraction cannot see: a merged op pays when both of its parts are used.

    Attributes:
        acyclic: whether no choice of the problem has a cycle; else every move is looked at for one.
    """

    problem: Problem
    choice: Choice
    acyclic: bool = False
    uses: dict[int, int] = field(default_factory=dict[int, int])
    cost: float = 0.0

    def run(self, until: float) -> Choice:
        """Make moves that gain until none does or the clock reads `until`; the best choice."""
        self._count()
        users = self._users()
        gained = True
        while gained:
            gained = False
            for at in users.values():
                charge(_SECONDS_A_MOVE)
                if now() > until:
                    return self.choice
                if self._try((c, p) for c, p in at if self.uses.get(c)):
                    gained = True
        return self.choice

    def _users(self) -> dict[int, list[tuple[int, int]]]:
        """For each class the (class, position) pairs of the e-nodes that read it."""
        found = dict[int, list[tuple[int, int]]]()
        for klass, choices in self.problem.operands.items():
            for position, operands in enumerate(choices):
                for c in operands:
                    found.setdefault(c, []).append((klass, position))
        return found

    def _try(self, moves: Iterable[tuple[int, int]]) -> bool:
        """Make the moves; undo them where they gain nothing or close a cycle."""
        wanted = {c: p for c, p in reversed(list(moves)) if self.choice[c] != p}
        if not wanted:
            return False
        before, old = self.cost, {c: self.choice[c] for c in wanted}
        self._switch(wanted)
        acyclic = self.acyclic or self.problem.order(self.choice) is not None
        if acyclic and self.cost < before * (1 - 1e-9):
            return True
        if acyclic:
            self._switch(dict(reversed(old.items())))
            self.cost = before
        else:
            self.choice.update(old)
            self._count()
        return False

    def _count(self) -> None:
        """Count uses from the roots."""
        self.uses, self.cost = {}, 0.0
        for root in self.problem.roots:
            self._take(root)

    def _switch(self, wanted: Choice) -> None:
        """Turn classes one after another; counts are exact as long as there is no cycle."""
        for klass, position in wanted.items():
            if not self.uses.get(klass):
                self.choice[klass] = position
                continue
            self._leave_operands(klass)
            self.choice[klass] = position
            self._take_operands(klass)

    def _take(self, klass: int) -> None:
        stack = [klass]
        while stack:
            c = stack.pop()
            self.uses[c] = self.uses.get(c, 0) + 1
            if self.uses[c] == 1:
                self.cost += self.problem.costs[c][self.choice[c]]
                stack += self.problem.operands[c][self.choice[c]]

    def _leave(self, klass: int) -> None:
        stack = [klass]
        while stack:
            c = stack.pop()
            self.uses[c] -= 1
            if self.uses[c] == 0:
                self.cost -= self.problem.costs[c][self.choice[c]]
                stack += self.problem.operands[c][self.choice[c]]

    def _take_operands(self, klass: int) -> None:
        self.cost += self.problem.costs[klass][self.choice[klass]]
        for c in self.problem.operands[klass][self.choice[klass]]:
            self._take(c)

    def _leave_operands(self, klass: int) -> None:
        self.cost -= self.problem.costs[klass][self.choice[klass]]
        for c in self.problem.operands[klass][self.choice[klass]]:
            self._leave(c)
