"""Schedules of the multi-level tile sketch, SSSRRSRS, and how shapes fix one (GetS of Algorithm 1).

    S0 blocks   S1 virtual threads   S2 threads   R0 fetches   R1   S3   R2   S4

Each loop over space has five tiles, each summed loop three. What stands right of R0 is the work of
one thread on what one fetch has brought.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .features import Features, divisors
from .machine import FLOAT, Machine, memory_of
from .nest import OperatorNest
from .operands import Ints, needed, operands
from .shapes import fits

# Ansor's limits of statements in an unrolled body.
UNROLLS = (0, 16, 64, 512, 1024)


@dataclass(frozen=True)
class TileSchedule:
    """Sizes of all tiles, and annotations.

    Attributes:
        space: five tiles of each loop over space.
        reduction: three tiles of each summed loop.
        unroll: the most statements of an unrolled body.
        vectors: elements that one load brings, of each operand.
    """

    space: tuple[Ints, ...]
    reduction: tuple[Ints, ...]
    unroll: int = 0
    vectors: Ints = ()

    @property
    def blocks(self) -> int:
        return math.prod(tiles[0] for tiles in self.space)

    @property
    def threads(self) -> int:
        """Of a block."""
        return math.prod(tiles[2] for tiles in self.space)

    @property
    def block(self) -> Ints:
        """The box of positions of a block (BShape)."""
        return tuple(math.prod(tiles[1:]) for tiles in self.space)

    @property
    def split(self) -> Ints:
        """Virtual threads per loop; with `box` it is TShape."""
        return tuple(tiles[1] for tiles in self.space)

    @property
    def box(self) -> Ints:
        """The box of positions that a thread computes in each part of the block."""
        return tuple(tiles[3] * tiles[4] for tiles in self.space)

    @property
    def fetches(self) -> Ints:
        """Fetches per summed loop (LShape)."""
        return tuple(tiles[0] for tiles in self.reduction)

    @property
    def slices(self) -> Ints:
        """What one fetch brings of each summed loop."""
        return tuple(tiles[1] * tiles[2] for tiles in self.reduction)

    def features(self, nest: OperatorNest) -> Features:
        """Blocks, and threads and memory of all of them."""
        memory = self.blocks * memory_of(nest, self.block, self.slices)
        return Features(self.blocks, self.blocks * self.threads, memory)

    def is_valid(self, nest: OperatorNest, machine: Machine) -> bool:
        """Whether a block has no more threads and memory than the machine gives it."""
        few = self.threads <= machine.most_threads
        return few and fits(nest, self.block, self.fetches, machine)

    def unrolled(self) -> Ints:
        """The tile of all loops that is written out: from inside while it is within the limit."""
        rank = len(self.space)
        reversed_space, reversed_sums = (
            range(rank - 1, -1, -1),
            range(len(self.reduction) - 1, -1, -1),
        )
        loops = [(k, self.space[k][4]) for k in reversed_space]
        loops += [(rank + k, self.reduction[k][2]) for k in reversed_sums]
        loops += [(k, self.space[k][3]) for k in reversed_space]
        loops += [(rank + k, self.reduction[k][level]) for level in (1, 0) for k in reversed_sums]
        steps, tile = math.prod(self.split), [1] * (rank + len(self.reduction))
        for loop, extent in loops:
            if steps * extent > self.unroll:
                break
            steps *= extent
            tile[loop] *= extent
        return tuple(tile)

    def registers(self, nest: OperatorNest) -> int:
        """Results of a thread, and the inputs of the body that is written out."""
        inputs = sum(math.prod(needed(o, self.unrolled())) for o in operands(nest))
        return math.prod(self.split) * math.prod(self.box) + inputs

    def loads(self, nest: OperatorNest, operand: int) -> int:
        """Elements of an operand that a thread brings in one fetch, rounded up."""
        elements = math.prod(needed(operands(nest)[operand], (*self.block, *self.slices)))
        return -(-elements // self.threads)


def built(
    nest: OperatorNest, block: Ints, thread: tuple[Ints, Ints], fetches: Ints
) -> TileSchedule:
    """The schedule of these shapes: scalar loads, nothing unrolled."""
    split, box = thread
    space = tuple(
        (n // whole, v, whole // (v * own), *_last_two(own))
        for n, whole, v, own in zip(nest.space, block, split, box, strict=True)
    )
    reduction = tuple(
        (count, *_last_two(n // count)) for n, count in zip(nest.reduction, fetches, strict=True)
    )
    return TileSchedule(space, reduction, 0, (1,) * len(operands(nest)))


def _last_two(length: int) -> tuple[int, int]:
    """The last tile is the least divisor but 1, the one before it the rest."""
    last = divisors(length)[1] if length > 1 else 1
    return length // last, last


def unroll_limits(schedule: TileSchedule) -> list[int]:
    """Ansor's limits, of those that write out the same loops only the least."""
    bodies: dict[Ints, int] = {}
    for limit in UNROLLS:
        bodies.setdefault(replace(schedule, unroll=limit).unrolled(), limit)
    return list(bodies.values())


def unrolled_like(nest: OperatorNest, schedule: TileSchedule, registers: int) -> TileSchedule:
    """The schedule with the limit whose registers are closest to so many, by ratio."""
    made = [replace(schedule, unroll=limit) for limit in unroll_limits(schedule)]
    return min(made, key=lambda one: abs(math.log(one.registers(nest) / registers)))


def vector_lengths(
    nest: OperatorNest, schedule: TileSchedule, operand: int, machine: Machine
) -> Sequence[int]:
    """Longer loads of an operand that divide what a thread brings."""
    loads, most = schedule.loads(nest, operand), machine.vector_bytes // FLOAT
    return [n for n in divisors(most) if n > 1 and loads % n == 0]
