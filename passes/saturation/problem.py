"""Extraction as a problem on numbers: classes, their choices, costs, roots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...dialects.graph.shaping import SplitOp
from ..rules.op_table import Head
from ..work_clock import charge, now
from .cycles import acyclic
from .egraph import PROJECT, EGraph, ENode
from .epilogues import PRODUCTS, SHARE, Epilogues, is_kind
from .price import NodePrices

_SECONDS_A_PAIR = 2e-7

Choice: TypeAlias = dict[int, int]
"""For each class that is needed the position of the e-node taken."""


@dataclass
class Problem:
    """Choose one e-node of each class that is needed, from the roots on, at the least total cost.

    Attributes:
        nodes: the e-nodes of each class; operands and costs stand at the same positions.
    """

    nodes: dict[int, list[ENode]]
    operands: dict[int, list[tuple[int, ...]]]
    costs: dict[int, list[float]]
    roots: tuple[int, ...]

    def cost(self, choice: Mapping[int, int]) -> float:
        """What a choice costs: each class once, whoever uses it."""
        return sum(self.costs[c][choice[c]] for c in sorted(self.needed(choice)))

    def needed(self, choice: Mapping[int, int]) -> set[int]:
        """The classes that the roots take under a choice."""
        found, stack = set[int](), list(self.roots)
        while stack:
            klass = stack.pop()
            if klass not in found:
                found.add(klass)
                stack += self.operands[klass][choice[klass]]
        return found

    def chosen(self, choice: Mapping[int, int]) -> dict[int, ENode]:
        """The e-nodes of the classes that the roots take."""
        return {c: self.nodes[c][choice[c]] for c in sorted(self.needed(choice))}

    def order(self, choice: Mapping[int, int]) -> list[int] | None:
        """The needed classes, operands first; None where the choice has a cycle."""
        state, order = dict[int, int](), list[int]()
        for root in self.roots:
            stack = [root]
            while stack:
                here = stack[-1]
                if state.get(here) == 2:
                    stack.pop()
                    continue
                operands = self.operands[here][choice[here]]
                waiting = [c for c in operands if state.get(c) != 2]
                if state.get(here) == 1 and any(state.get(c) == 1 for c in waiting):
                    return None
                state[here] = 1
                if waiting:
                    stack += reversed(waiting)
                else:
                    state[here] = 2
                    order.append(here)
                    stack.pop()
        return order

    def size(self) -> int:
        """How many e-nodes there are to choose from."""
        return sum(map(len, self.nodes.values()))

    def without(self, dropped: Mapping[int, Iterable[int]]) -> Problem:
        """The problem with some e-nodes gone, and what the roots then no longer reach."""
        kept = {
            c: [k for k in range(len(nodes)) if k not in set(dropped.get(c, ()))]
            for c, nodes in self.nodes.items()
        }
        reached, stack = set[int](), list(self.roots)
        while stack:
            klass = stack.pop()
            if klass not in reached:
                reached.add(klass)
                stack += [x for k in kept[klass] for x in self.operands[klass][k]]
        order = [c for c in self.nodes if c in reached]
        return Problem(
            {c: [self.nodes[c][k] for k in kept[c]] for c in order},
            {c: [self.operands[c][k] for k in kept[c]] for c in order},
            {c: [self.costs[c][k] for k in kept[c]] for c in order},
            self.roots,
        )


def problem_of(graph: EGraph, roots: Iterable[int], prices: NodePrices) -> Problem:
    """The extraction problem of an e-graph.

    An e-node that is its own operand is left out. A split of one part of another split along its
    axis stands there twice: decoding makes both one where nothing else reads that part, so, on the
    other split in place of the part, it costs nothing.

    Where kernels are priced, what a product may write with its result costs little.
    """
    nodes, operands, costs = (
        dict[int, list[ENode]](),
        dict[int, list[tuple[int, ...]]](),
        dict[int, list[float]](),
    )
    reached, stack = set[int](), list(roots)
    wanted, classes = tuple(dict.fromkeys(stack)), graph.classes()
    epilogues = Epilogues.of(graph, prices)
    while stack:
        klass = stack.pop()
        if klass in reached:
            continue
        reached.add(klass)
        nodes[klass], operands[klass], costs[klass] = [], [], []
        for node in classes[klass]:
            children = tuple(dict.fromkeys(node.operands))
            if klass in children:
                continue
            nodes[klass].append(node)
            operands[klass].append(children)
            costs[klass].append(epilogues.price(node))
            stack += children
        for node, whole in _continued(graph, classes, klass):
            nodes[klass].append(node)
            operands[klass].append((whole,))
            costs[klass].append(0.0)
            stack.append(whole)
    return Problem(nodes, operands, costs, wanted)


def without_launches(problem: Problem, prices: NodePrices) -> Problem | None:
    """The problem where only products are kernels of their own; None where no kernels are priced.

    What is read and written still counts: of what fuses most does so with what stands beside it.
    """
    if prices.costs is None:
        return None
    launch = prices.costs.target.launch
    costs = {
        c: [
            seconds
            if is_kind(node, prices.ops, *PRODUCTS)
            else max(seconds - launch, seconds * SHARE)
            for node, seconds in zip(nodes, problem.costs[c], strict=True)
        ]
        for c, nodes in problem.nodes.items()
    }
    return replace(problem, costs=costs)


def _continued(
    graph: EGraph, classes: Mapping[int, list[ENode]], klass: int
) -> list[tuple[ENode, int]]:
    """The splits of a class that go on from another, with the class of that one."""
    found = dict[int, ENode]()
    for node in classes[klass]:
        if node.head.op != SplitOp.name:
            continue
        for part in classes[node.operands[0]]:
            if part.head.op != PROJECT:
                continue
            whole = part.operands[0]
            outer = (n.head for n in classes[whole] if n.head.op == SplitOp.name)
            if whole != klass and any(_axis(head) == _axis(node.head) for head in outer):
                found.setdefault(whole, node)
    return [(node, whole) for whole, node in found.items()]


def _axis(head: Head) -> object:
    """The attribute `axis`."""
    return dict(head.attributes)["axis"]


def without_cycles(problem: Problem, choice: Choice) -> Problem:
    """The problem with cycles filtered; the choice stays possible."""
    return problem.without(acyclic(problem.operands, problem.roots, choice))


def moved(choice: Choice, problem: Problem, other: Problem) -> Choice:
    """A choice of one problem in another that has some of its e-nodes; those not there are left."""
    positions = {
        (id(node), other.operands[c][k]): k
        for c, nodes in other.nodes.items()
        for k, node in enumerate(nodes)
    }
    taken = {
        c: (id(problem.nodes[c][k]), problem.operands[c][k])
        for c, k in choice.items()
        if c in other.nodes
    }
    return {c: positions[key] for c, key in taken.items() if key in positions}


def contracted(problem: Problem) -> Problem:
    """The problem where each class that can be had for nothing has one way to be had.

    Inputs, weights and what only renames them: no choice there can lower the cost, and a chain that
    is built from its end cannot close a cycle.
    """
    free = _free(problem)
    others = {
        c: [k for k in range(len(nodes)) if k != free[c]]
        for c, nodes in problem.nodes.items()
        if c in free
    }
    return problem.without(others)


def reduced(problem: Problem, until: float = math.inf) -> Problem:
    """The problem without dominated e-nodes, as many as are found before the clock reads `until`.

    One e-node makes another of its class useless where it costs no more and its operands, free ones
    apart, are among the other's.
    """
    free = _free(problem)
    dropped = dict[int, set[int]]()
    for klass in problem.nodes:
        sets = [frozenset(c for c in o if c not in free) for o in problem.operands[klass]]
        costs = problem.costs[klass]
        gone = dropped.setdefault(klass, set())
        for a, first in enumerate(sets):
            charge(_SECONDS_A_PAIR * len(sets))
            if now() > until:
                break
            for b, second in enumerate(sets):
                same = costs[b] == costs[a] and first == second
                ahead = b < a if same else costs[b] <= costs[a]
                if a != b and b not in gone and ahead and second <= first:
                    gone.add(a)
                    break
    return problem.without(dropped)


def _free(problem: Problem) -> Choice:
    """Classes with an e-node of cost 0 all of whose operands are such; that e-node's position."""
    free, changed = Choice(), True
    while changed:
        changed = False
        for klass, choices in problem.operands.items():
            if klass in free:
                continue
            for position, operands in enumerate(choices):
                if problem.costs[klass][position] == 0.0 and all(c in free for c in operands):
                    free[klass], changed = position, True
                    break
    return free
