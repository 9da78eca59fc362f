"""Extraction as an integer linear program (HiGHS), warm-started, anytime, with its gap.

    min   sum of cost_n x_n
    s.t.  sum of x_n over a class = y_c         y_c = 1 for roots
          sum of x_n over the e-nodes of a class with operand d  <=  y_d       (0 <= y <= 1)

x is 0 or 1. One constraint for all e-nodes of a class that share an operand is tighter than one for
each. If the e-graph has no cycles, each part of the problem (parts.py) is solved by itself.
Otherwise further rows forbid the cycles of each strongly connected component: a row for each cycle
if they are few, else TENSAT's ordering variables t: t_c >= t_d + 1 - M (1 - x_n) with M the
component's size. The cost of the solver's choice is always recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ...dialects.types import Array
from ..work_clock import now
from .highs import IntegerProgram, solve_within
from .parts import parts_of
from .problem import Choice, Problem

if TYPE_CHECKING:
    import networkx as nx

_MAX_CYCLES = 500
"""At most this many rows for the cycles of one component, and classes in one whose cycles are
counted."""


@dataclass(frozen=True)
class Solution:
    """The best choice known.

    Attributes:
        gap: (cost - proven bound) / cost; 0 for an optimum.
        optimal: whether the solver proved it.
    """

    choice: Choice  # an e-node of each class
    cost: float
    gap: float
    optimal: bool
    seconds: float


def solve(
    problem: Problem,
    start: Choice,
    seconds: float,
    components: Sequence[CyclicComponent] = (),
    mebibytes: float = 2048.0,
) -> Solution:
    """The best choice found within the limits, never worse than `start`.

    Args:
        start: a choice without a cycle: the warm start, and the answer if nothing is better.
        components: those with cycles, which are forbidden in them.
    """
    if components:
        return _solve_program(problem, start, seconds, components, mebibytes)
    begun, choice, total_gap, optimal = now(), dict(start), 0.0, True
    for part in parts_of(problem):
        seconds_left = max(seconds - (now() - begun), 0.0)
        part_start = {c: start[c] for c in part.nodes if c in start}
        solution = _solve_program(part, part_start, seconds_left, (), mebibytes)
        choice |= solution.choice
        total_gap += solution.gap * solution.cost
        optimal = optimal and solution.optimal
    cost = problem.cost(choice)
    gap = total_gap / cost if cost else 0.0
    return Solution(choice, cost, gap, optimal, now() - begun)


def _solve_program(
    problem: Problem,
    start: Choice,
    seconds: float,
    components: Sequence[CyclicComponent],
    mebibytes: float,
) -> Solution:
    """Solve the problem as one integer program."""
    begun = now()
    start_cost = problem.cost(start)
    if start_cost == 0.0:
        return Solution(start, 0.0, 0.0, True, now() - begun)
    model = _Model(problem, components, 1.0 / start_cost)
    program = model.program(start)
    left = seconds - (now() - begun)
    answer = solve_within(program, max(left, 0.0), mebibytes)
    choice, cost = start, start_cost
    decoded = None if answer.values is None else model.choice(answer.values, start)
    if decoded is not None and problem.order(decoded) is not None:
        recomputed = problem.cost(decoded)
        if recomputed < cost:
            choice, cost = decoded, recomputed
    bound = min(answer.bound * start_cost, cost)
    gap = (cost - bound) / cost if cost else 0.0
    return Solution(choice, cost, gap, answer.optimal and gap < 1e-6, now() - begun)


@dataclass(frozen=True)
class CyclicComponent:
    """Classes that reach each other.

    Attributes:
        cycles: all cycles among them; None if they are too many for a constraint each.
    """

    classes: tuple[int, ...]
    cycles: tuple[tuple[int, ...], ...] | None


class _Model:
    """The rows and columns of the program; costs are scaled so that the warm start costs 1."""

    def __init__(
        self, problem: Problem, components: Sequence[CyclicComponent], scale: float
    ) -> None:
        self.problem = problem
        self.x: dict[tuple[int, int], int] = {}
        self.y: dict[int, int] = {}
        self.t: dict[int, int] = {}
        self.component: dict[int, set[int]] = {}
        self.cost: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.whole: list[bool] = []
        self.rows: list[tuple[float, float, list[int], list[float]]] = []
        for klass, nodes in problem.nodes.items():
            rooted = klass in problem.roots
            self.y[klass] = self._column(0.0, 1.0 if rooted else 0.0, 1.0, False)
            for position in range(len(nodes)):
                price = problem.costs[klass][position] * scale
                self.x[klass, position] = self._column(price, 0.0, 1.0, True)
        for klass in problem.nodes:
            self._class(klass)
        for component in components:
            self._forbid_cycles(component)

    def _column(self, cost: float, lower: float, upper: float, is_integer: bool) -> int:
        self.cost.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.whole.append(is_integer)
        return len(self.cost) - 1

    def _class(self, klass: int) -> None:
        positions = range(len(self.problem.nodes[klass]))
        own = [self.x[klass, p] for p in positions]
        self.rows.append((0.0, 0.0, [*own, self.y[klass]], [1.0] * len(own) + [-1.0]))
        readers = dict[int, list[int]]()
        for position in positions:
            for c in self.problem.operands[klass][position]:
                readers.setdefault(c, []).append(self.x[klass, position])
        for c, users in readers.items():
            self.rows.append((-np.inf, 0.0, [*users, self.y[c]], [1.0] * len(users) + [-1.0]))

    def _forbid_cycles(self, component: CyclicComponent) -> None:
        if component.cycles is None:
            self._order_classes(set(component.classes))
        else:
            for cycle in component.cycles:
                self._forbid_cycle(cycle)

    def _forbid_cycle(self, cycle: Sequence[int]) -> None:
        """Forbid one cycle: some class of it takes an e-node that leaves it."""
        variables = [
            self.x[c, position]
            for c, d in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
            for position, operands in enumerate(self.problem.operands[c])
            if d in operands
        ]
        self.rows.append((-np.inf, len(cycle) - 1.0, variables, [1.0] * len(variables)))

    def _order_classes(self, component: set[int]) -> None:
        size = float(len(component))
        self.t.update((c, self._column(0.0, 0.0, size, False)) for c in sorted(component))
        self.component.update(dict.fromkeys(component, component))
        for klass in sorted(component):
            for position, operands in enumerate(self.problem.operands[klass]):
                for c in (c for c in operands if c in component):
                    # t_c + 1 <= t_klass + (size + 1) (1 - x)
                    entries = [self.t[c], self.t[klass], self.x[klass, position]]
                    self.rows.append((-np.inf, size, entries, [1.0, -1.0, size + 1.0]))

    def program(self, start: Choice) -> IntegerProgram:
        """The program as arrays."""
        return IntegerProgram(
            cost=np.array(self.cost),
            lower=np.array(self.lower),
            upper=np.array(self.upper),
            whole=np.array(self.whole),
            row_lower=np.array([row[0] for row in self.rows]),
            row_upper=np.array([row[1] for row in self.rows]),
            start=np.cumsum([0, *(len(row[2]) for row in self.rows)]),
            index=np.array([c for row in self.rows for c in row[2]]),
            value=np.array([v for row in self.rows for v in row[3]]),
            first=np.array(self._values(start)),
        )

    def _values(self, choice: Mapping[int, int]) -> list[float]:
        values = [0.0] * len(self.cost)
        order = self.problem.order(choice)
        assert order is not None, "the warm start has a cycle"
        for klass in order:
            values[self.y[klass]] = values[self.x[klass, choice[klass]]] = 1.0
            inside = self.component.get(klass, ())
            if inside:  # one more than the operands in its component
                below = [c for c in self.problem.operands[klass][choice[klass]] if c in inside]
                values[self.t[klass]] = max((values[self.t[c]] + 1.0 for c in below), default=0.0)
        return values

    def choice(self, values: Array, start: Choice) -> Choice:
        """The choice of a solution; classes it does not decide keep the start's choice."""
        choice = dict(start)
        for klass, nodes in self.problem.nodes.items():
            positions = range(len(nodes))
            best = max(positions, key=lambda p: (values[self.x[klass, p]], -p))
            if values[self.x[klass, best]] > 0.5:
                choice[klass] = best
        return choice


def cyclic_components(problem: Problem) -> list[CyclicComponent]:
    """Return the strongly connected components of more than one class."""
    import networkx as nx

    edges = ((c, d) for c, nodes in problem.operands.items() for o in nodes for d in o)
    graph, components = nx.DiGraph(edges), list[CyclicComponent]()
    for component in nx.strongly_connected_components(graph):
        if len(component) > 1:
            inside = nx.DiGraph(graph.subgraph(component))
            components.append(CyclicComponent(tuple(inside), _few_cycles(inside)))
    return components


def _few_cycles(graph: nx.DiGraph[int]) -> tuple[tuple[int, ...], ...] | None:
    """Return the cycles of a component; None if its classes or its cycles are too many."""
    import networkx as nx

    if len(graph) > _MAX_CYCLES:
        return None
    cycles = tuple(tuple(c) for c in islice(nx.simple_cycles(graph), _MAX_CYCLES + 1))
    return cycles if len(cycles) <= _MAX_CYCLES else None
