"""Which nest starts from which: the cheapest way to tune a set of nests (ETO, section 5 and 6).

In the choice graph an arc from the root to a nest costs what tuning it in full costs, one from b to
a what tuning a from b's program costs. A tree from the root to all nests is a plan. With bridges in
the graph, which need not be tuned, the plan is a Steiner tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .nest import OperatorNest, Sketches, bridges, groups_of, reuse_pairs, sketches_of
from .pair_cost import back_end_cost, pair_cost
from .steiner import ROOT, Arcs, steiner_tree

RootCost: TypeAlias = Callable[[OperatorNest], float]
PairCost: TypeAlias = Callable[[OperatorNest, OperatorNest], float]
"""The cost of the first nest, which starts from the second's program."""


@dataclass(frozen=True)
class Arc:
    """A nest to tune, and the nest whose program it starts from; None: in full.

    Units: cost in programs to measure.
    """

    parent: OperatorNest | None
    child: OperatorNest
    cost: float


@dataclass(frozen=True)
class ReusePlan:
    """The arcs of a tree, parents first, and the bridges among its nests."""

    arcs: tuple[Arc, ...]
    bridges: tuple[OperatorNest, ...]

    @property
    def cost(self) -> float:
        """Programs to measure in all."""
        return math.fsum(arc.cost for arc in self.arcs)

    @property
    def in_full(self) -> int:
        """How many nests are tuned without another's program."""
        return sum(arc.parent is None and arc.cost > 0 for arc in self.arcs)

    @property
    def known(self) -> int:
        """How many nests were tuned before."""
        return sum(arc.parent is None and arc.cost == 0 for arc in self.arcs)


def select(
    nests: Iterable[OperatorNest],
    hops: int | None = 1,
    root_costs: RootCost = back_end_cost,
    pair_costs: PairCost = pair_cost,
    sketches: Sketches | None = sketches_of,
    without: Collection[OperatorNest] = (),
    known: Collection[OperatorNest] = (),
) -> ReusePlan:
    """A cheap plan for these nests; `hops` 0 uses no bridges, None all of them.

    A plan with bridges is never dearer than the cheapest without.

    Args:
        sketches: those of a bridge, which must be its nests'; None: they always are.
        without: bridges that cannot be used.
        known: other nests that are tuned already; they cost nothing, and are used if it helps.

    >>> tiled = ("multi-level-tile",)
    >>> rows = [OperatorNest("matmul", tiled, (1, n, 64), (64,)) for n in (64, 128, 256)]
    >>> plan = select(rows)
    >>> plan.in_full, plan.bridges
    (1, ())
    """
    arcs, costs = list[Arc](), (root_costs, pair_costs)
    joined: list[OperatorNest] = []
    for group in groups_of(nests):
        more = [one for one in bridges(group, hops, sketches) if one not in without]
        tuned = [one for one in dict.fromkeys(known) if one.group == group[0].group]
        found = _tree(group, more, [one for one in tuned if one not in group], costs)
        arcs += found
        joined += [arc.child for arc in found if arc.child in more and arc.child not in tuned]
    return ReusePlan(tuple(arcs), tuple(joined))


def _tree(
    group: Sequence[OperatorNest],
    more: Sequence[OperatorNest],
    tuned: Sequence[OperatorNest],
    costs: tuple[RootCost, PairCost],
) -> list[Arc]:
    in_full, from_another = costs
    nests = list(dict.fromkeys((*group, *more, *tuned)))
    numbers = {nest: k for k, nest in enumerate(nests, start=1)}
    weights = {(ROOT, k): 0.0 if n in tuned else in_full(n) for n, k in numbers.items()}
    for a, b in reuse_pairs(nests):
        weights[numbers[b], numbers[a]] = from_another(a, b)
    parents = steiner_tree(weights, range(1, len(group) + 1))
    return [_arc(parents, k, nests, weights) for k in _parents_first(parents)]


def _arc(parents: dict[int, int], k: int, nests: Sequence[OperatorNest], costs: Arcs) -> Arc:
    parent = None if parents[k] == ROOT else nests[parents[k] - 1]
    return Arc(parent, nests[k - 1], costs[parents[k], k])


def _parents_first(parents: dict[int, int]) -> list[int]:
    order, done = list[int](), {ROOT}
    while len(order) < len(parents):
        ready = sorted(k for k, parent in parents.items() if parent in done and k not in done)
        order += ready
        done |= set(ready)
    return order
