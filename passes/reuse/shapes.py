"""Shapes of a block, a thread and a slice of the reduction, chosen by a machine model.

GetBShape, GetTShape and GetLShape of ETO's Algorithm 1. Ties go to the least virtual split, then to
the first shape in order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from .features import Range, divisors
from .machine import FLOAT, Machine, blocks_of, memory_of
from .nest import Ints, OperatorNest


def boxes(space: Ints) -> Iterator[Ints]:
    """All boxes whose sides divide the loops."""
    return product(*map(divisors, space))


@lru_cache(maxsize=4096)
def _best_blocks(nest: OperatorNest, machine: Machine) -> dict[int, Ints]:
    """The cheapest block of each number of points."""
    of_points: dict[int, list[Ints]] = defaultdict(list)
    for box in boxes(nest.space):
        of_points[math.prod(box)].append(box)
    return {
        points: min(found, key=lambda box: (machine.block_cost(nest, box), box))
        for points, found in of_points.items()
    }


def block_shape(nest: OperatorNest, blocks: int, machine: Machine) -> Ints | None:
    """The cheapest box such that there are so many blocks; None if there is none."""
    return _best_blocks(nest, machine).get(nest.points // blocks)


def sliced_loop(nest: OperatorNest) -> int | None:
    """The summed loop that may be read in slices: channels, or the k of a product; else None."""
    return None if nest.kind.startswith("depthwise-") or not nest.reduction else 0


def slice_shapes(nest: OperatorNest) -> list[Ints]:
    """All numbers of fetches per summed loop; at most one of them exceeds 1."""
    loop, ones = sliced_loop(nest), (1,) * len(nest.reduction)
    if loop is None:
        return [ones]
    return [
        tuple(n if k == loop else 1 for k in range(len(ones)))
        for n in divisors(nest.reduction[loop])
    ]


def slices_of(nest: OperatorNest, fetches: Ints) -> Ints:
    """The part of each summed loop that one fetch brings."""
    return tuple(n // f for n, f in zip(nest.reduction, fetches, strict=True))


def near_slices(nest: OperatorNest, block: Ints, memory: float) -> Ints:
    """The fetches whose block needs about so many elements of near memory, by ratio."""

    def distance(found: tuple[Ints, int]) -> tuple[float, Ints]:
        return abs(math.log(found[1] / memory)), found[0]

    return min(memories(nest, block), key=distance)[0]


def slices_within(nest: OperatorNest, block: Ints, memory: Range) -> list[Ints]:
    """All fetches whose memory, over all blocks, lies in a range."""
    count = blocks_of(nest, block)
    return [fetches for fetches, needs in memories(nest, block) if count * needs in memory]


@lru_cache(maxsize=1 << 16)
def memories(nest: OperatorNest, block: Ints) -> tuple[tuple[Ints, int], ...]:
    """All fetches, with the elements of near memory that a block needs."""
    return tuple((f, memory_of(nest, block, slices_of(nest, f))) for f in slice_shapes(nest))


def thread_shape(
    nest: OperatorNest, threads: int, block: Ints, fetches: Ints, machine: Machine
) -> tuple[Ints, Ints] | None:
    """The cheapest (virtual split, box) of so many threads a block; None if there is none."""
    share = math.prod(block) // threads
    slices = slices_of(nest, fetches)

    def cost(shape: tuple[Ints, Ints]) -> tuple[int, int, Ints, Ints]:
        split, box = shape
        requests = machine.thread_cost(nest, block, slices, split, box)
        return requests, math.prod(split), split, box

    return min(_thread_shapes(block, share, machine), key=cost, default=None)


def _thread_shapes(block: Ints, share: int, machine: Machine) -> Iterator[tuple[Ints, Ints]]:
    for whole in boxes(block):
        if math.prod(whole) != share:
            continue
        for split in boxes(whole) if machine.splits else ((1,) * len(whole),):
            yield split, tuple(n // v for n, v in zip(whole, split, strict=True))


def fits(nest: OperatorNest, block: Ints, fetches: Ints, machine: Machine) -> bool:
    """Whether a block's share of the operands fits its near memory."""
    return memory_of(nest, block, slices_of(nest, fetches)) * FLOAT <= machine.memory
