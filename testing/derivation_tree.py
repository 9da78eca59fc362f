"""Count the nodes that a search without interning would visit.

Such a search does not recognise programs: it visits one once for each sequence of rule applications
that leads to it. Nodes are counted, not visited: the numbers of ways to a program, and of uses of
limited rules on the way, are added up level by level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..dialects.canonical_types import Scope
from ..passes.derivation.body import body_of
from ..passes.derivation.merges import merge_copies
from ..passes.derivation.replace import Roots, scopes_of
from ..passes.derivation.rules import EAGER
from ..passes.derivation.search import (
    DerivationState,
    RuleApplication,
    Searcher,
    Uses,
    flops_of,
    uses_after,
)
from ..passes.derivation.step import DerivationRule, DerivationStep

Node: TypeAlias = "tuple[Roots, Uses]"


@dataclass(frozen=True)
class Tree:
    """Sizes of a space.

    Attributes:
        nodes: paths of rule applications from the root, including the empty one.
        states: distinct programs among them.
    """

    nodes: int
    states: int

    @property
    def spared(self) -> float:
        """The share of the nodes that interning saves."""
        return 1 - self.states / self.nodes


class StepwiseSearcher(Searcher):
    """Applies eager rules like the others: in any order, one node each."""

    def normalised(self, roots: Roots) -> tuple[Roots, tuple[RuleApplication, ...]]:
        """Leave the program as it is."""
        return roots, ()

    def applications(
        self, state: DerivationState
    ) -> Iterator[tuple[DerivationRule | None, tuple[RuleApplication, ...], Roots]]:
        """Every rule application to an innermost contraction, and eager rules on any scope."""
        yield from super().applications(state)
        for scope in scopes_of(state.roots):
            for step in self._shrinking(scope):
                if step.image is None or scope not in state.roots:
                    new = self.replacer.replace(state.roots, scope, step)
                    yield None, (RuleApplication(scope, step),), new

    def _shrinking(self, scope: Scope) -> Iterator[DerivationStep]:
        if (step := merge_copies(scope)) is not None:
            yield step
        body = body_of(scope)
        if body is not None:
            for rule in EAGER:
                yield from rule.propose(body, self.settings.options)


def tree_of(searcher: Searcher, roots: Roots) -> Tree:
    """Count paths and programs down to the depth of the searcher's settings.

    Limits of rules hold on each path by itself; programs with too many operations are left out.
    """
    most = searcher.settings.flops * flops_of(roots)
    following: dict[Node, list[Node]] = {}
    level: Counter[Node] = Counter({(roots, ()): 1})
    nodes, states = 1, {roots}
    for _ in range(searcher.settings.depth):
        reached: Counter[Node] = Counter()
        for node, ways in level.items():
            if node not in following:
                following[node] = list(_after(searcher, node, most))
            for new in following[node]:
                reached[new] += ways
        nodes += reached.total()
        states.update(programs for programs, _ in reached)
        level = reached
    return Tree(nodes, len(states))


def _after(searcher: Searcher, node: Node, most_flops: float) -> Iterator[Node]:
    state = DerivationState(node[0], used=node[1])
    for rule, applied, roots in searcher.applications(state):
        if flops_of(roots) <= most_flops:
            yield roots, uses_after(state, rule, applied)
