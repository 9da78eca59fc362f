"""The major loop nest of an operator: all that decides whose fast program it may start from.

Source: ETO (Fang et al., PVLDB 15(2), 2022), sections 1 and 3, Definitions 2 and 5.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

Ints: TypeAlias = "tuple[int, ...]"
# Sketches: the structure of a program, without its sizes.
TILED, CROSS_THREAD, TWO_LEVEL, UNROLLED = (
    "multi-level-tile",
    "cross-thread-reduction",
    "two-level-tile",
    "unroll-constant-tensor",
)
# Most threads of a CUDA block.
MOST_THREADS = 1024


@dataclass(frozen=True, order=True)
class OperatorNest:
    """The loops of an operator's main work.

    Loops stand in a fixed order of their kind: images, features, spatial dims, then channels and
    taps for a convolution; batch, rows, columns, then the summed loop for a product.
    """

    kind: str
    sketches: tuple[str, ...]
    space: Ints
    reduction: Ints
    strides: Ints = ()  # of a convolution, per spatial dim
    dilations: Ints = ()
    pads: Ints = ()

    @property
    def loops(self) -> Ints:
        """Extents of all loops, those of the space first."""
        return (*self.space, *self.reduction)

    @property
    def points(self) -> int:
        """Iterations of the loops over space: positions of the result."""
        return math.prod(self.space)

    @property
    def terms(self) -> int:
        """Iterations of the reduction, for each position."""
        return math.prod(self.reduction)

    @property
    def size(self) -> int:
        """Iterations in all."""
        return self.points * self.terms

    @property
    def group(self) -> tuple[object, ...]:
        """What two nests share if one may ever start from the other's program."""
        return self.kind, self.sketches, len(self.space), len(self.reduction)

    @property
    def text(self) -> str:
        """As `conv2d [1, 64, 56, 56 | 64, 3, 3]`."""
        space, reduction = (", ".join(map(str, part)) for part in (self.space, self.reduction))
        return f"{self.kind} [{space} | {reduction}]"

    def at_most(self, other: OperatorNest) -> bool:
        """Whether no loop is longer than the other's."""
        return all(a <= b for a, b in zip(self.loops, other.loops, strict=True))


Sketches: TypeAlias = Callable[[str, Ints, Ints], tuple[str, ...]]


def sketches_of(kind: str, space: Ints, reduction: Ints) -> tuple[str, ...]:
    """The sketches that Ansor tries on a GPU.

    A sum also gets a reduction across threads where it is longer than the result is large, and the
    result fits one block (TVM's rule AddCrossThreadReduction).
    """
    points, terms = math.prod(space), math.prod(reduction)
    if not reduction:
        return (TWO_LEVEL,)
    if points <= MOST_THREADS and points < terms:
        return (TILED, CROSS_THREAD)
    return (TILED,)


def groups_of(nests: Iterable[OperatorNest]) -> list[list[OperatorNest]]:
    """The distinct nests, by group, in order of appearance."""
    found: dict[tuple[object, ...], list[OperatorNest]] = defaultdict(list)
    for nest in dict.fromkeys(nests):
        found[nest.group].append(nest)
    return list(found.values())


def can_reuse(a: OperatorNest, b: OperatorNest) -> bool:
    """Whether a may start from b's program (Definition 2).

    Same kind and sketches, and no loop of one is longer than the other's. Strides and pads play no
    part: operators with equal loops may start from each other.
    """
    return a != b and a.group == b.group and (a.at_most(b) or b.at_most(a))


def reuse_pairs(nests: Iterable[OperatorNest]) -> list[tuple[OperatorNest, OperatorNest]]:
    """All (a, b) such that a may start from b's program.

    >>> small, large = (OperatorNest("matmul", (TILED,), (1, n, n), (n,)) for n in (64, 128))
    >>> reuse_pairs([small, large]) == [(small, large), (large, small)]
    True
    """
    return [
        pair for group in groups_of(nests) for pair in permutations(group, 2) if can_reuse(*pair)
    ]


def bridges(
    nests: Iterable[OperatorNest], hops: int | None = 1, sketches: Sketches | None = sketches_of
) -> list[OperatorNest]:
    """Nests that join two which may not start from each other (Definition 5).

    A bridge has the shorter of each two loops and no strides, so both may start from it. Hop k
    also joins the bridges of the hops before; None goes on until no new nest is found.

    >>> a = OperatorNest("conv2d", (TILED,), (1, 64, 14, 14), (64, 3, 3))
    >>> b = OperatorNest("conv2d", (TILED,), (1, 64, 28, 28), (64, 1, 1))
    >>> [bridge.text for bridge in bridges([a, b])]
    ['conv2d [1, 64, 14, 14 | 64, 1, 1]']
    """
    return [bridge for group in groups_of(nests) for bridge in _bridges(group, hops, sketches)]


def _bridges(
    group: Sequence[OperatorNest], hops: int | None, sketches: Sketches | None
) -> list[OperatorNest]:
    known, old, new = {nest.loops for nest in group}, list[OperatorNest](), list(group)
    found: list[OperatorNest] = []
    while new and (hops is None or hops > 0):
        fresh: list[OperatorNest] = []
        for b in new:
            for a in (*old, *new):
                bridge = _between(a, b, sketches)
                if bridge is not None and bridge.loops not in known:
                    known.add(bridge.loops)
                    fresh.append(bridge)
        old, new = [*old, *new], fresh
        found += fresh
        hops = None if hops is None else hops - 1
    return found


def _between(a: OperatorNest, b: OperatorNest, sketches: Sketches | None) -> OperatorNest | None:
    """The bridge of a and b; None if they need none, or it would have other sketches."""
    if a.at_most(b) or b.at_most(a):
        return None
    least = tuple(map(min, a.loops, b.loops))
    space, reduction = least[: len(a.space)], least[len(a.space) :]
    if sketches is not None and sketches(a.kind, space, reduction) != a.sketches:
        return None
    ones, rank = (1,) * len(a.strides), len(a.pads)
    return OperatorNest(a.kind, a.sketches, space, reduction, ones, ones, (0,) * rank)
