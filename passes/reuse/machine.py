"""Machine models: what a block and a thread cost, before anything is run.

    GPU                                     CPU
    block                                   parallel task
    thread                                  vector lane of a micro-tile
    cache-line requests into shared memory  cache lines that a task reads
    shared-memory requests of its warps     vector loads and broadcasts of its micro-tiles

Source: ETO, section 5.1; the CPU's column is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from .nest import MOST_THREADS, Ints, OperatorNest
from .operands import Operand, needed, offset, operands, reads_loop, row_major

FLOAT = 4  # bytes


class Machine(Protocol):
    """What the construction asks of a machine."""

    @property
    def most_threads(self) -> int:
        """Of a block."""
        ...

    @property
    def memory(self) -> int:
        """Bytes that a block may keep near."""
        ...

    @property
    def splits(self) -> bool:
        """Whether a thread may have virtual ones."""
        ...

    @property
    def vector_bytes(self) -> int:
        """Most that one load moves."""
        ...

    def block_cost(self, nest: OperatorNest, block: Ints) -> int:
        """Lines that all blocks request; `block` is a box of positions."""
        ...

    def thread_cost(
        self, nest: OperatorNest, block: Ints, slices: Ints, split: Ints, box: Ints
    ) -> int:
        """Requests for near memory of a block's threads.

        A thread computes the box `box` in each of `split` parts of the block; `slices` is the part
        of the reduction that is near at a time.
        """
        ...


@lru_cache(maxsize=1 << 16)
def lines(shape: Ints, box: Ints, elements: int) -> int:
    """Distinct aligned lines of so many elements that a box at the origin touches."""
    steps = row_major(shape)
    run, outer = 1, len(shape)
    while outer and run == math.prod(shape[outer:]):  # whole dims so far: one run of memory
        outer -= 1
        run *= box[outer]
    starts = np.zeros(1, np.int64)
    for extent, step in zip(box[:outer], steps[:outer], strict=True):
        starts = (starts[:, None] + np.arange(extent) * step).ravel()
    first, last = starts // elements, (starts + run - 1) // elements
    shared = int((first[1:] == last[:-1]).sum())
    return int((last - first + 1).sum()) - shared


def _lines_of(nest: OperatorNest, block: Ints, elements: int) -> int:
    """Lines of all operands that one block reads over its whole reduction."""
    tile = (*block, *nest.reduction)
    reads = operands(nest)
    return sum(lines(needed(o, nest.loops), needed(o, tile), elements) for o in reads)


def blocks_of(nest: OperatorNest, block: Ints) -> int:
    """How many blocks there are."""
    return math.prod(n // b for n, b in zip(nest.space, block, strict=True))


def memory_of(nest: OperatorNest, block: Ints, slices: Ints) -> int:
    """Elements of all operands that one block needs for a slice of the reduction."""
    tile = (*block, *slices)
    return sum(math.prod(needed(operand, tile)) for operand in operands(nest))


def loads(nest: OperatorNest, operand: Operand, slices: Ints, split: Ints, box: Ints) -> int:
    """Elements of an operand that a thread reads for a slice, each once."""
    parts = math.prod(n for loop, n in enumerate(split) if reads_loop(operand, loop))
    return parts * math.prod(needed(operand, (*box, *slices)))


@dataclass(frozen=True)
class Gpu:
    """A CUDA device, as compute capability 6.0 and later have it."""

    most_threads: int = MOST_THREADS
    memory: int = 48 << 10
    splits: bool = True
    vector_bytes: int = 16
    warp: int = 32
    banks: int = 32
    segment: int = 32  # bytes of one request

    def block_cost(self, nest: OperatorNest, block: Ints) -> int:
        """Each block counts as the first; it asks for all its input at once."""
        return blocks_of(nest, block) * _lines_of(nest, block, self.segment // FLOAT)

    def thread_cost(
        self, nest: OperatorNest, block: Ints, slices: Ints, split: Ints, box: Ints
    ) -> int:
        """By the bank conflicts of each thread's first element."""
        grid = tuple(n // (v * t) for n, v, t in zip(block, split, box, strict=True))
        total = 0
        for operand in operands(nest):
            near = needed(operand, (*block, *slices))
            starts = np.zeros(1, np.int64)
            for loop, extent in enumerate(grid):
                step = offset(operand, near, loop) * box[loop]
                starts = (starts[:, None] + np.arange(extent) * step).ravel()
            total += self._conflicts(starts) * loads(nest, operand, slices, split, box)
        return total

    def _conflicts(self, starts: np.ndarray) -> int:
        """Requests of all warps: the most distinct addresses of one bank, for each of them."""
        total = 0
        for begin in range(0, len(starts), self.warp):
            banks = np.unique(starts[begin : begin + self.warp]) % self.banks
            total += int(np.bincount(banks).max())
        return total


GPU = Gpu()


@dataclass(frozen=True)
class Cpu:
    """A processor with vectors: a task is a block, a lane of a micro-tile a thread."""

    lanes: int = 8
    memory: int = 256 << 10  # half of a usual second cache
    line: int = 64
    most_threads: int = 1 << 20
    splits: bool = False

    @property
    def vector_bytes(self) -> int:
        return self.lanes * FLOAT

    def block_cost(self, nest: OperatorNest, block: Ints) -> int:
        """Each task counts as the first."""
        return blocks_of(nest, block) * _lines_of(nest, block, self.line // FLOAT)

    def thread_cost(
        self, nest: OperatorNest, block: Ints, slices: Ints, split: Ints, box: Ints
    ) -> int:
        """Vector loads where lanes are neighbours, a load a lane where not, else broadcasts.

        Multiply-adds count too: they are as many for all micro-tiles that use every lane.
        """
        grid = tuple(n // t for n, t in zip(block, box, strict=True))
        lane = len(grid) - 1
        used = min(self.lanes, grid[lane])
        total = math.prod(split) * math.prod(box) * math.prod(slices)
        for operand in operands(nest):
            near = needed(operand, (*block, *slices))
            step = offset(operand, near, lane) * box[lane]
            one = 1 if step in (0, 1) else used
            total += one * loads(nest, operand, slices, split, box)
        return total * math.prod(grid) // used
