"""Cycles in the e-graph: the filter before extraction.

It walks depth first from the roots and drops each e-node that closes a cycle, but never one
of a given acyclic choice: what is left always has that choice, so extraction is never infeasible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

Cycles: TypeAlias = Literal["guarded", "in-ilp"]
CYCLES: tuple[Cycles, ...] = ("guarded", "in-ilp")


def acyclic(
    nodes: Mapping[int, Sequence[tuple[int, ...]]],
    roots: Iterable[int],
    kept: Mapping[int, int],
) -> dict[int, set[int]]:
    """Positions of e-nodes to drop, by class, so that no cycle is left.

    Args:
        nodes: operands of the e-nodes of each class.
        kept: the position of one e-node of each class; together they have no cycle.
    """
    walk = _Walk(nodes, kept)
    for root in roots:
        walk.visit(root)
    return walk.dropped


class _Walk:
    """Depth-first; a class is open while its operands are visited, then closed."""

    def __init__(
        self, nodes: Mapping[int, Sequence[tuple[int, ...]]], kept: Mapping[int, int]
    ) -> None:
        self.nodes, self.kept = nodes, kept
        self.dropped: dict[int, set[int]] = {}
        self.closed: set[int] = set()
        self.depth: dict[int, int] = {}
        self.stack: list[tuple[int, Iterator[tuple[int, int]]]] = []
        self.positions: list[int] = []

    def visit(self, root: int) -> None:
        if root not in self.closed:
            self._open(root)
        while self.stack:
            here, rest = self.stack[-1]
            edge = next(rest, None)
            if edge is None:
                self._pop()
                self.closed.add(here)
                continue
            position, child = edge
            if position in self.dropped.get(here, ()):
                continue
            self.positions[-1] = position
            if child in self.depth:
                self._cut(self.depth[child])
            elif child not in self.closed:
                self._open(child)

    def _open(self, klass: int) -> None:
        self.depth[klass] = len(self.stack)
        self.stack.append((klass, iter(_edges(klass, self.nodes, self.kept))))
        self.positions.append(-1)

    def _pop(self) -> None:
        klass, _ = self.stack.pop()
        self.positions.pop()
        del self.depth[klass]

    def _cut(self, start: int) -> None:
        """Drop the last e-node of the cycle on the stack that is not kept; go back to its class."""
        at = len(self.stack) - 1
        while self.positions[at] == self.kept[self.stack[at][0]]:
            at -= 1
        assert at >= start, "the kept choice has a cycle"
        while len(self.stack) > at + 1:
            self._pop()
        self.dropped.setdefault(self.stack[at][0], set()).add(self.positions[at])


def _edges(
    klass: int, nodes: Mapping[int, Sequence[tuple[int, ...]]], kept: Mapping[int, int]
) -> list[tuple[int, int]]:
    """(position, operand) pairs, those of the kept e-node first."""
    first = kept[klass]
    order = [first, *(p for p in range(len(nodes[klass])) if p != first)]
    return [(p, c) for p in order for c in nodes[klass][p]]
