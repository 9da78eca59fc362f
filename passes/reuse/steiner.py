"""Cheap directed trees that reach given nodes, perhaps through others.

`arborescence` is the exact one without other nodes; `steiner_tree` is the greedy of Watel and
Weisser (A practical greedy approximation for the directed Steiner tree problem, J. Comb. Optim.
2016): GFLAC, with a ratio of the number of terminals. Nodes are integers, 0 the root. Ties go to
the arc whose nodes come first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Arcs: TypeAlias = "Mapping[tuple[int, int], float]"
"""Costs of arcs (from, to); all are positive."""
Parents: TypeAlias = dict[int, int]
ROOT = 0


def arborescence(arcs: Arcs, nodes: Iterable[int]) -> Parents:
    """The cheapest tree from the root to all these nodes, which uses no others.

    Each node has an arc from the root.
    """
    import networkx as nx

    wanted = sorted({ROOT, *nodes})
    graph = nx.DiGraph()
    graph.add_nodes_from(wanted)
    for u in wanted:
        for v in wanted[1:]:
            if (u, v) in arcs:
                graph.add_edge(u, v, weight=arcs[u, v])
    tree = nx.minimum_spanning_arborescence(graph, default=float("inf"))
    return {v: u for u, v in sorted(tree.edges)}


def cost_of(arcs: Arcs, parents: Parents) -> float:
    """The cost of a tree."""
    return math.fsum(arcs[u, v] for v, u in parents.items())


def steiner_tree(arcs: Arcs, terminals: Sequence[int]) -> Parents:
    """A cheap tree from the root to all terminals; never dearer than the arborescence of them.

    The greedy's nodes are joined again in the cheapest way; then single other nodes are taken in
    and out (ours), from there and from the arborescence.
    """
    plain = arborescence(arcs, terminals)
    tree, left = dict[int, int](), sorted(set(terminals))
    while left:
        tree |= _Flow(arcs, {ROOT, *tree}, left).first_tree()
        left = [t for t in left if t not in tree]
    starts = (plain, tree)
    found = [_improved(arcs, terminals, start) for start in starts]
    return min(found, key=lambda tree: cost_of(arcs, tree))


def _improved(arcs: Arcs, terminals: Sequence[int], start: Iterable[int]) -> Parents:
    """Take one other node in or out, while that makes the tree cheaper."""
    others = sorted({node for arc in arcs for node in arc} - {ROOT, *terminals})
    best = _joined(arcs, terminals, start)
    again = True
    while again:
        again = False
        for node in others:
            if node not in best and not _may_help(arcs, best, node):
                continue
            found = _joined(arcs, terminals, {node} ^ best.keys())
            if cost_of(arcs, found) < cost_of(arcs, best):
                best, again = found, True
    return best


def _may_help(arcs: Arcs, tree: Parents, node: int) -> bool:
    """Whether the node's cheapest arc costs less than hanging others below it saves."""
    nearest = min(cost for u in (ROOT, *tree) if (cost := arcs.get((u, node))) is not None)
    saved = [arcs[u, v] - arcs.get((node, v), arcs[u, v]) for v, u in tree.items()]
    return nearest < sum(gain for gain in saved if gain > 0)


def _joined(arcs: Arcs, terminals: Sequence[int], nodes: Iterable[int]) -> Parents:
    """The cheapest tree of these nodes, without others that are leaves."""
    while True:
        tree = arborescence(arcs, nodes)
        used = {*terminals, *tree.values()} & tree.keys()
        if used == tree.keys():
            return tree
        nodes = used


class _Flow:
    """FLAC: each terminal sends a unit of flow a second up the arcs that lead to it.

    A node's arcs fill at the rate of the terminals below it. A full arc lets the flow pass on,
    unless some node would then send to a terminal in two ways. The first full arc that leaves a
    node of the tree ends it: what hangs below costs least for each terminal.
    """

    def __init__(self, arcs: Arcs, tree: set[int], terminals: Iterable[int]) -> None:
        self.tree = tree
        self.arcs: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for (u, v), cost in arcs.items():
            if v not in tree:
                self.arcs[v].append((cost, u))
        for found in self.arcs.values():
            found.sort(reverse=True)  # the next arc to fill is the last
        self.below = {t: frozenset([t]) for t in terminals}  # terminals that a node sends to
        self.filled = dict.fromkeys(self.below, 0.0)
        self.children: dict[int, list[int]] = defaultdict(list)
        self.parents: dict[int, list[int]] = defaultdict(list)

    def first_tree(self) -> Parents:
        """The arcs from the tree to some terminals."""
        while True:
            seconds, v = min(
                ((self.arcs[v][-1][0] - self.filled[v]) / len(found), v)
                for v, found in self.below.items()
                if self.arcs[v]
            )
            for node, found in self.below.items():
                self.filled[node] += seconds * len(found)
            u = self.arcs[v].pop()[1]
            if u in self.tree:
                return {v: u, **self._hanging(v)}
            above = self._above(u)
            if not any(self.below.get(node, frozenset()) & self.below[v] for node in above):
                self._join(u, v, above)

    def _above(self, u: int) -> list[int]:
        """The node and all that send to it."""
        found, todo = {u: None}, [u]
        while todo:
            for parent in self.parents[todo.pop()]:
                if parent not in found:
                    found[parent] = None
                    todo.append(parent)
        return list(found)

    def _join(self, u: int, v: int, above: Iterable[int]) -> None:
        self.children[u].append(v)
        self.parents[v].append(u)
        for node in above:
            self.below[node] = self.below.get(node, frozenset()) | self.below[v]
            self.filled.setdefault(node, 0.0)

    def _hanging(self, v: int) -> Parents:
        found, todo = dict[int, int](), [v]
        while todo:
            parent = todo.pop()
            for child in self.children[parent]:
                found[child] = parent
                todo.append(child)
        return found
